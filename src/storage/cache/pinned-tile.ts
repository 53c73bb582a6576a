/** Keeps the files of tiles on this node while they are read. */
import { access } from 'node:fs/promises';
import type { TileVersion } from '../files/index.js';
import type { GroupRecord } from '../records/index.js';

export interface PinnedTile {
  /** Bytes that had to be fetched from the object store. */
  fetched: number;
  /** Allows the files to be evicted. */
  release(): void;
}

/** The methods of `Storage` that are used here. */
interface TileFiles {
  tilePath(tile: TileVersion, group: string): string;
  pinFiles(tile: TileVersion, groups: GroupRecord[]): Promise<() => void>;
}

/** Fetches missing files of tiles and pins them. If one fails, all are released. Throws the TW_STORE_ errors. */
export async function pinTiles(
  files: TileFiles,
  tiles: { tile: TileVersion; groups: GroupRecord[] }[],
): Promise<PinnedTile> {
  const releases: (() => void)[] = [];
  const release = () => {
    for (const one of releases) one();
  };
  let fetched = 0;
  try {
    for (const { tile, groups } of tiles) {
      const isLocal = await Promise.all(
        groups.map(({ name }) =>
          access(files.tilePath(tile, name)).then(
            () => true,
            () => false,
          ),
        ),
      );
      releases.push(await files.pinFiles(tile, groups));
      fetched += groups.reduce((bytes, group, i) => (isLocal[i] ? bytes : bytes + group.bytes), 0);
    }
    return { fetched, release };
  } catch (error) {
    release();
    throw error;
  }
}

/** Runs `work` while the files are pinned. It gets the number of bytes that were fetched. Throws as `pinTiles` and `work` do. */
export async function withPinnedTiles<T>(
  files: TileFiles,
  tiles: { tile: TileVersion; groups: GroupRecord[] }[],
  work: (fetched: number) => Promise<T>,
): Promise<T> {
  const { fetched, release } = await pinTiles(files, tiles);
  try {
    return await work(fetched);
  } finally {
    release();
  }
}
