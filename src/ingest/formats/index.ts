import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type FileKind, fileKind, SIGNATURE_BYTES } from '../../raster/index.js';
import { notRecognised } from '../errors.js';
import type { Candidate, DescribeOptions, Scene, SceneFormat } from '../scene.js';
import { cfGrid } from './cf-grid.js';
import { landsat } from './landsat.js';
import { modis } from './modis.js';
import { naip } from './naip.js';
import { nlcd } from './nlcd.js';
import { rasterFile } from './raster-file.js';
import { sentinel2 } from './sentinel2.js';
import { sentinel2Loose } from './sentinel2-loose.js';
import { stacItem } from './stac-item.js';
import { viirs } from './viirs.js';

/** In the order they are asked; the first that detects its product describes the input. */
const FORMATS: SceneFormat[] = [
  sentinel2,
  landsat,
  viirs,
  modis,
  naip,
  nlcd,
  sentinel2Loose,
  stacItem,
  cfGrid,
  rasterFile,
];

/** The scenes in a file or product folder. */
export async function describeScenes(path: string, options: DescribeOptions): Promise<Scene[]> {
  const candidate = await candidateAt(path);
  const format = await formatOf(candidate);
  if (format) return format.describe(candidate, options);
  throw notRecognised(
    path,
    candidate.entries ? 'the folder holds no product that is known' : 'it is of no known format',
  );
}

export interface FoundInputs {
  /** Files and product folders, each with one scene or more, or an archive of one. */
  inputs: string[];
  /** Folders in which nothing was found. */
  passedOver: string[];
}

/**
 * The inputs below a path: a file is one, a product folder is one, and any other folder is looked through for raster files,
 * archives and folders of products, one level deep.
 */
export async function findInputs(path: string): Promise<FoundInputs> {
  const candidate = await candidateAt(path);
  const found: FoundInputs = { inputs: [], passedOver: [] };
  if (!candidate.entries || (await formatOf(candidate))) return { ...found, inputs: [path] };
  for (const entry of candidate.entries) {
    const child = await candidateAt(join(path, entry));
    if (child.entries) ((await formatOf(child)) ? found.inputs : found.passedOver).push(child.path);
    else if (child.kind && !isOverview(entry)) found.inputs.push(child.path);
  }
  if (found.inputs.length === 0)
    throw notRecognised(path, 'the folder holds neither a raster file nor a product');
  return found;
}

/** Whether the file must be unpacked first, by its content. */
export async function isArchive(path: string): Promise<boolean> {
  const { kind } = await candidateAt(path);
  return kind === 'zip' || kind === 'tar' || kind === 'gzip';
}

/** Overviews and statistics beside a file are TIFF or Erdas files as well, and no scenes. */
const isOverview = (name: string) => /\.(ovr|rrd|aux)$/i.test(name);

async function candidateAt(path: string): Promise<Candidate> {
  try {
    const info = await stat(path);
    if (!info.isDirectory() && !info.isFile()) throw new Error('it is a pipe or a device');
    if (!info.isDirectory()) return { path, kind: await kindOf(path), entries: null };
    const entries = await readdir(path, { withFileTypes: true });
    const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    return { path, kind: null, entries: names.sort() };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw notRecognised.because(error, path, code === 'ENOENT' ? 'there is no such file or folder' : message);
  }
}

async function kindOf(path: string): Promise<FileKind | null> {
  const file = await open(path);
  try {
    const start = Buffer.alloc(SIGNATURE_BYTES);
    const { bytesRead } = await file.read(start, 0, start.length, 0);
    return fileKind(start.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
}

async function formatOf(candidate: Candidate): Promise<SceneFormat | null> {
  for (const format of FORMATS) if (await format.detect(candidate)) return format;
  return null;
}
