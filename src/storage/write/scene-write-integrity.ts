/** Checks which tiles of a committed scene are complete, before the same delivery skips them. */
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import type { Catalogue } from '../catalogue/index.js';
import { filesOf, isIntact, onDisk, type TileVersion } from '../files/index.js';
import type { ObjectStore } from '../object-store/index.js';

const CONCURRENCY = 16;

/** Returns the cells whose tile has an intact record, and every file the bytes that were written. */
export async function intactCellsOnDisk(
  dir: string,
  { tiles: table }: Catalogue,
  tiles: TileVersion[],
): Promise<string[]> {
  const intact: string[] = [];
  for (const { id, geocode, version } of tiles) {
    const [scanned] = await table.scanMany([id]);
    const tile = scanned?.record;
    if (tile?.version !== version) continue;
    let isWhole = true;
    for (const file of filesOf(tile))
      isWhole &&= await onDisk(dir, () => isIntact(join(dir, file.path), file));
    if (isWhole) intact.push(geocode);
  }
  return intact;
}

/** For tiles in an object store: the cells of other nodes, and those whose tile in this node's catalogue has all files, by their sizes. */
export async function intactCellsInStore(
  objects: ObjectStore,
  { tiles: table }: Catalogue,
  tiles: TileVersion[],
): Promise<string[]> {
  const areStored = await mapConcurrent(tiles, CONCURRENCY, async ({ id, version }) => {
    const tile = await table.get(id);
    if (tile?.version !== version) return true;
    for (const { path, bytes } of filesOf(tile))
      if ((await objects.head(path))?.bytes !== bytes) return false;
    return true;
  });
  return tiles.flatMap(({ geocode }, i) => (areStored[i] ? [geocode] : []));
}
