/** Finds the inputs below a path. */
import { join } from 'node:path';
import type { FileType } from '../../raster/index.js';
import { notRecognised } from '../errors.js';
import { identifyFormat } from '../formats/index.js';
import { probeInput } from '../formats/shared/index.js';

export interface FoundInputs {
  /** Files and product folders, each with one scene or more, or an archive of one. */
  inputs: string[];
  /** Folders that hold no input. */
  passedOver: string[];
  /** With a name pattern only: raster files whose names do not fit it. */
  skipped?: SkippedFile[];
}

export interface SkippedFile {
  path: string;
  reason: string;
}

export interface InputFinder {
  /** Inputs below a path. Throws TW_INGEST_NOT_RECOGNISED and TW_INGEST_NAME_MISMATCH. */
  find(path: string): Promise<FoundInputs>;
  /** The files of an input that is not an archive. A product folder is its own only file. */
  filesOf(input: string): Promise<string[]>;
}

/**
 * A file and a product folder are one input each. Any other folder is searched for raster files, archives and product folders, one
 * level deep. Throws TW_INGEST_NOT_RECOGNISED if it holds none.
 */
export async function findInputs(path: string): Promise<FoundInputs> {
  const candidate = await probeInput(path);
  const found: FoundInputs = { inputs: [], passedOver: [] };
  if (!candidate.entries || (await identifyFormat(candidate))) return { ...found, inputs: [path] };
  for (const entry of candidate.entries) {
    const child = await probeInput(join(path, entry));
    if (child.entries) ((await identifyFormat(child)) ? found.inputs : found.passedOver).push(child.path);
    else if (child.fileType && !isSideFile(entry)) found.inputs.push(child.path);
  }
  if (found.inputs.length === 0) throw noInputsIn(path);
  return found;
}

export const noInputsIn = (folder: string) =>
  notRecognised(folder, 'the folder holds neither a raster file nor a product');

/** True if the file must be unpacked first, by its content. */
export async function isArchive(path: string): Promise<boolean> {
  return isArchiveType((await probeInput(path)).fileType);
}

export function isArchiveType(type: FileType | null): boolean {
  return type === 'zip' || type === 'tar' || type === 'gzip';
}

/** Overviews, masks and statistics beside a raster are TIFF or Erdas files, too, but not scenes. */
export const isSideFile = (name: string) => /\.(ovr|msk|rrd|aux)$/i.test(name);
