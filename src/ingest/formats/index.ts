import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { notRecognised } from '../errors.js';
import type { DescribeOptions, Scene, SceneFormat } from '../scene.js';
import { geotiff } from './geotiff.js';
import { landsat } from './landsat.js';

/** In the order they are asked; the first that knows the input describes it. */
const FORMATS: SceneFormat[] = [landsat, geotiff];

/** Describes the scene in a file or product folder. */
export async function describeScene(path: string, options: DescribeOptions): Promise<Scene> {
  for (const format of FORMATS) {
    const scene = await format.describe(path, options);
    if (scene) return scene;
  }
  throw notRecognised(path, 'the folder holds no product that is known');
}

export interface FoundScenes {
  scenes: string[];
  /** Folders in which no scene was found. */
  passedOver: string[];
}

/**
 * The scenes below a path: a file is one, a product folder is one, and any other folder is looked through for GeoTIFF files
 * and for folders of products, one level deep.
 */
export async function findScenes(path: string): Promise<FoundScenes> {
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw notRecognised.because(
      error,
      path,
      error.code === 'ENOENT' ? 'there is no such file or folder' : error.message,
    );
  });
  const found: FoundScenes = { scenes: [], passedOver: [] };
  if (!info.isDirectory() || (await isProduct(path))) return { ...found, scenes: [path] };
  const entries = await readdir(path, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const child = join(path, entry.name);
    if (entry.isFile() && /\.tiff?$/i.test(entry.name)) found.scenes.push(child);
    else if (entry.isDirectory()) ((await isProduct(child)) ? found.scenes : found.passedOver).push(child);
  }
  if (found.scenes.length === 0)
    throw notRecognised(path, 'the folder holds neither a GeoTIFF nor a product');
  return found;
}

/** A broken product is one as well: its ingest then says what is wrong. */
async function isProduct(folder: string): Promise<boolean> {
  return (await landsat.describe(folder, {}).catch(() => true)) !== null;
}
