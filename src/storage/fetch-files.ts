import { access } from 'node:fs/promises';
import type { GroupRecord, TileRecord } from './records.js';
import type { Storage } from './storage.js';

/** Sees to it that files of a tile are on this node, and tells how many bytes had to come from the shared store. Throws the TW_STORE_ errors. */
export async function fetchFiles(storage: Storage, tile: TileRecord, groups: GroupRecord[]): Promise<number> {
  const isHere = await Promise.all(
    groups.map(({ name }) =>
      access(storage.tilePath(tile, name)).then(
        () => true,
        () => false,
      ),
    ),
  );
  await storage.bringFiles(tile, groups);
  return groups.reduce((bytes, group, i) => (isHere[i] ? bytes : bytes + group.bytes), 0);
}
