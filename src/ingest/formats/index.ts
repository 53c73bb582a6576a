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

/**
 * The scenes below a path: a file is one, a product folder is one, and any other folder is looked through for GeoTIFF files
 * and for folders of products, one level deep.
 */
export async function findScenes(path: string): Promise<string[]> {
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw notRecognised.because(
      error,
      path,
      error.code === 'ENOENT' ? 'there is no such file or folder' : error.message,
    );
  });
  if (!info.isDirectory() || (await landsat.describe(path, {}).catch(() => true))) return [path];
  const found: string[] = [];
  for (const entry of (await readdir(path, { withFileTypes: true })).sort((a, b) =>
    a.name < b.name ? -1 : 1,
  )) {
    const child = join(path, entry.name);
    if (entry.isFile() && /\.tiff?$/i.test(entry.name)) found.push(child);
    else if (entry.isDirectory() && (await landsat.describe(child, {}).catch(() => true))) found.push(child);
  }
  if (found.length === 0) throw notRecognised(path, 'the folder holds neither a GeoTIFF nor a product');
  return found;
}
