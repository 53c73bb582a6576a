import { access } from 'node:fs/promises';
import type { GroupRecord, TileRecord } from '../catalogue/records.js';
import type { Storage } from '../storage.js';

export interface PinnedTile {
  /** Bytes that had to come from the shared store. */
  fetched: number;
  /** The files may go now. */
  release(): void;
}

/** Sees to it that files of a tile are on this node and stay there. Throws the TW_STORE_ errors. */
export async function pinTile(
  storage: Storage,
  tile: TileRecord,
  groups: GroupRecord[],
): Promise<PinnedTile> {
  const isHere = await Promise.all(
    groups.map(({ name }) =>
      access(storage.tilePath(tile, name)).then(
        () => true,
        () => false,
      ),
    ),
  );
  const release = await storage.pinFiles(tile, groups);
  return {
    fetched: groups.reduce((bytes, group, i) => (isHere[i] ? bytes : bytes + group.bytes), 0),
    release,
  };
}

/** The same of several; all are released where one fails. */
export async function pinTiles(
  storage: Storage,
  tiles: { tile: TileRecord; groups: GroupRecord[] }[],
): Promise<PinnedTile> {
  const held: PinnedTile[] = [];
  const release = () => {
    for (const one of held) one.release();
  };
  try {
    for (const { tile, groups } of tiles) held.push(await pinTile(storage, tile, groups));
    return { fetched: held.reduce((sum, { fetched }) => sum + fetched, 0), release };
  } catch (error) {
    release();
    throw error;
  }
}
