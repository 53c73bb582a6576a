/** Checks whether a committed scene is complete, before the same delivery is skipped. */
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import type { Catalogue } from '../catalogue/index.js';
import { filesOf, isIntact, onDisk } from '../files/index.js';
import type { ObjectStore } from '../object-store/index.js';
import type { SceneRecord } from '../records/index.js';

const CONCURRENCY = 16;

/** True if every tile of a scene has an intact record, and every file the bytes that were written. */
export async function isSceneIntact(
  dir: string,
  { tiles }: Catalogue,
  scene: SceneRecord,
  idOf: (geocode: string) => string,
): Promise<boolean> {
  for (const geocode of scene.geocodes) {
    const [scanned] = await tiles.scanMany([idOf(geocode)]);
    const tile = scanned?.record;
    if (tile?.version !== scene.version) return false;
    for (const file of filesOf(tile))
      if (!(await onDisk(dir, () => isIntact(join(dir, file.path), file)))) return false;
  }
  return true;
}

/** For a scene in an object store: true if each of its tiles in this node's catalogue has all files there, by their sizes. */
export async function isSceneInStore(
  objects: ObjectStore,
  { tiles }: Catalogue,
  scene: SceneRecord,
  idOf: (geocode: string) => string,
): Promise<boolean> {
  const areStored = await mapConcurrent(scene.geocodes, CONCURRENCY, async (geocode) => {
    const tile = await tiles.get(idOf(geocode));
    // Other nodes own the other tiles.
    if (tile?.version !== scene.version) return true;
    for (const { path, bytes } of filesOf(tile))
      if ((await objects.head(path))?.bytes !== bytes) return false;
    return true;
  });
  return areStored.every((isStored) => isStored);
}
