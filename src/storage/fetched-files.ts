/** Files of tiles that were made on other nodes: fetched from the shared store when they are wanted, and kept. */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { TileVersion } from './layout.js';
import { tileFile } from './layout.js';
import type { ObjectStore } from './object-store/object-store.js';
import type { GroupRecord } from './records.js';

/**
 * Invariant: a file has its name only when it is whole: it is written beside it, and its checksum is that of the record. A file is
 * fetched once, however many ask for it at the same time.
 */
export class FetchedFiles {
  private readonly coming = new Map<string, Promise<void>>();

  constructor(
    private readonly dir: string,
    private readonly objects: ObjectStore,
  ) {}

  /** Sees to it that files of a tile are in the folder. Throws the TW_STORE_ errors. */
  async bring(tile: TileVersion, groups: Pick<GroupRecord, 'name' | 'crc32'>[]): Promise<void> {
    await Promise.all(groups.map((group) => this.bringOne(tileFile(tile, group.name), group.crc32)));
  }

  private async bringOne(name: string, crc32: number): Promise<void> {
    if (await isThere(join(this.dir, name))) return;
    const known = this.coming.get(name);
    if (known) return known;
    const coming = this.fetch(name, crc32).finally(() => this.coming.delete(name));
    this.coming.set(name, coming);
    return coming;
  }

  private async fetch(name: string, crc32: number): Promise<void> {
    const path = join(this.dir, name);
    const temporary = `${path}.${randomUUID()}.tmp`;
    await mkdir(dirname(path), { recursive: true });
    try {
      await pipeline(await this.objects.stream(name, { crc32 }), createWriteStream(temporary));
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
