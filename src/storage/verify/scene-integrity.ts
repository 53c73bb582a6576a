import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { mapConcurrent } from '../../async/index.js';
import type { Catalogue } from '../catalogue/catalogue.js';
import type { SceneRecord, TileRecord } from '../catalogue/records.js';
import { storageCorrupt } from '../errors.js';
import { tileFile } from '../files/paths.js';
import type { ObjectStore } from '../object-store/object-store.js';

const CONCURRENCY = 16;

/** Whether every tile of a scene has its record, and every file of it the bytes that were written. */
export async function isSceneIntact(
  dir: string,
  { tiles }: Catalogue,
  scene: SceneRecord,
  idOf: (geocode: string) => string,
): Promise<boolean> {
  for (const geocode of scene.geocodes) {
    const tile = await tiles.get(idOf(geocode)).catch((error) => {
      if (storageCorrupt.is(error)) return undefined;
      throw error;
    });
    if (tile?.version !== scene.version || !(await hasIntactFiles(dir, tile))) return false;
  }
  return true;
}

/** Of a scene in a shared store: whether every tile of it that is known here has its files there. */
export async function isSceneInStore(
  objects: ObjectStore,
  { tiles }: Catalogue,
  scene: SceneRecord,
  idOf: (geocode: string) => string,
): Promise<boolean> {
  const areThere = await mapConcurrent(scene.geocodes, CONCURRENCY, async (geocode) => {
    const tile = await tiles.get(idOf(geocode));
    // Others are with other nodes.
    if (tile?.version !== scene.version) return true;
    for (const { name, bytes } of tile.groups)
      if ((await objects.head(tileFile(tile, name)))?.bytes !== bytes) return false;
    return true;
  });
  return areThere.every((isThere) => isThere);
}

async function hasIntactFiles(dir: string, tile: TileRecord): Promise<boolean> {
  for (const { name, crc32: written } of tile.groups) {
    const file = await readFile(join(dir, tileFile(tile, name))).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (file === null || crc32(file) !== written) return false;
  }
  return true;
}
