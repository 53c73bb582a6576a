/** Files of tiles and models that were made on other nodes: fetched from the shared store when they are wanted, and kept in the cache. */
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { GroupRecord } from '../catalogue/records.js';
import { onDisk, storeLost, storeNotFound } from '../errors.js';
import type { DiskReserve } from '../files/disk-reserve.js';
import { type ModelVersion, modelFile, type TileVersion, tileFile, tileFolder } from '../files/paths.js';
import { scratchFile } from '../files/scratch.js';
import { checksumFile } from '../object-store/byte-streams.js';
import type { ObjectStore } from '../object-store/object-store.js';
import type { FileCache } from './file-cache.js';

export type GroupFile = Pick<GroupRecord, 'name' | 'bytes' | 'crc32'>;

/** While a folder is made, room that is made elsewhere may remove one above it. */
const MAX_RENAME_ATTEMPTS = 5;

/**
 * Invariant: a file has its name only when it is whole, and is used only when its checksum is that of the record. One that lay there
 * when the process began, or was fetched for nobody in particular, is summed before its first use, and fetched again where it is
 * damaged. A file is fetched once, however many ask for it at the same time.
 */
export class Fetcher {
  /** Fetches that somebody waits for. */
  foregroundFetches = 0;
  private readonly inFlight = new Map<string, Promise<void>>();

  constructor(
    private readonly dir: string,
    private readonly objects: ObjectStore,
    private readonly cache: FileCache,
    private readonly reserve: DiskReserve,
  ) {}

  /**
   * Sees to it that files of a tile are in the folder, where they stay until the function is called that it resolves to, and for
   * ten seconds more. Throws the TW_STORE_ errors, TW_STORAGE_DISK_LOW.
   */
  async fetchAndPin(tile: TileVersion, groups: GroupFile[]): Promise<() => void> {
    const release = this.cache.pin(tileFolder(tile));
    // All of them have ended before the folder is released: a failed one must not leave others that still write into it.
    const brought = await Promise.allSettled(groups.map((group) => this.ensureLocal(tile, group)));
    const failed = brought.find((one) => one.status === 'rejected');
    if (!failed) return release;
    release();
    throw failed.reason;
  }

  /** Fetches the files of a tile that are not here, for nobody in particular; returns how many bytes. */
  async prefetch(tile: TileVersion, groups: GroupFile[]): Promise<number> {
    const release = this.cache.pin(tileFolder(tile), false);
    try {
      const lacking = this.missing(tile, groups);
      // A reader may have brought it meanwhile.
      for (const group of lacking)
        if (this.missing(tile, [group]).length > 0) await this.fetchOnce(tile, group, false);
      return totalBytes(lacking);
    } finally {
      release();
    }
  }

  /** Files of a tile that are not known to be here. */
  missing(tile: TileVersion, groups: GroupFile[]): GroupFile[] {
    const folder = tileFolder(tile);
    return groups.filter(({ name, bytes }) => this.cache.file(folder, `${name}.tif`)?.bytes !== bytes);
  }

  private async ensureLocal(tile: TileVersion, group: GroupFile): Promise<void> {
    if (await this.isLocal(tile, group)) {
      this.cache.hits++;
      return;
    }
    this.cache.misses++;
    this.foregroundFetches++;
    try {
      await this.fetchOnce(tile, group, true);
      // Who came first may have fetched it for nobody in particular.
      if (!(await this.isLocal(tile, group))) await this.fetchOnce(tile, group, true);
    } finally {
      this.foregroundFetches--;
    }
  }

  /** Whether a file is here, whole. */
  private async isLocal(tile: TileVersion, group: GroupFile): Promise<boolean> {
    const { name, bytes } = group;
    const folder = tileFolder(tile);
    await this.cache.evictionDone(folder);
    const path = join(this.dir, tileFile(tile, name));
    const size = await stat(path).then(
      (info) => info.size,
      () => undefined,
    );
    if (size !== bytes) return false;
    if (this.cache.file(folder, `${name}.tif`)?.isVerified) return true;
    await this.once(`sum of ${path}`, () => this.verifyChecksum(tile, group, path));
    return this.cache.file(folder, `${name}.tif`)?.isVerified === true;
  }

  /** Notes that a file is sound, where it is. */
  private async verifyChecksum(
    tile: TileVersion,
    { name, bytes, crc32 }: GroupFile,
    path: string,
  ): Promise<void> {
    if ((await onDisk(this.dir, () => checksumFile(path))) !== crc32) return;
    this.cache.set(tileFolder(tile), `${name}.tif`, { bytes, isVerified: true });
  }

  private fetchOnce(tile: TileVersion, group: GroupFile, isSound: boolean): Promise<void> {
    const name = tileFile(tile, group.name);
    return this.once(name, () => this.fetch(name, tile, group, isSound));
  }

  private async fetch(name: string, tile: TileVersion, group: GroupFile, isVerified: boolean): Promise<void> {
    const folder = tileFolder(tile);
    const { bytes, crc32 } = group;
    await this.cache.evictionDone(folder);
    const arrived = this.cache.reserveBytes(bytes);
    try {
      await this.cache.makeRoom();
      await this.download(name, isVerified ? { bytes, crc32 } : { bytes }, `tile ${tile.id}`);
      this.cache.set(folder, `${group.name}.tif`, { bytes, isVerified });
    } finally {
      arrived();
    }
  }

  /** Sees to it that a file of a model is here, where it stays. It is small, and summed every time. Throws the same. */
  async ensureModelFile(model: ModelVersion, file: GroupFile): Promise<void> {
    const name = modelFile(model, file.name);
    const path = join(this.dir, name);
    // Whatever keeps it from being read: the download replaces the file, or reports why it cannot.
    const info = await stat(path).catch(() => undefined);
    if (info?.size === file.bytes && (await onDisk(this.dir, () => checksumFile(path))) === file.crc32)
      return;
    await this.once(name, () => this.download(name, file, `model ${model.model} of ${model.geocode}`));
  }

  private once(name: string, work: () => Promise<void>): Promise<void> {
    const known = this.inFlight.get(name);
    if (known) return known;
    const coming = work().finally(() => this.inFlight.delete(name));
    this.inFlight.set(name, coming);
    return coming;
  }

  /** `owner` is what the file is of, for the message. */
  private async download(
    name: string,
    file: { bytes: number; crc32?: number },
    owner: string,
  ): Promise<void> {
    await this.reserve.check(file.bytes);
    const temporary = scratchFile(this.dir);
    try {
      await this.objects.copyTo(name, temporary, file);
      await onDisk(this.dir, () => moveTo(join(this.dir, name), temporary));
    } catch (error) {
      await rm(temporary, { force: true });
      throw storeNotFound.is(error) ? storeLost.because(error, name, this.objects.url, owner) : error;
    }
  }
}

/** Gives a file its name, and makes the folders above it where they are missing. */
async function moveTo(path: string, temporary: string): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      if (attempt > 1) await mkdir(dirname(path), { recursive: true });
      return await rename(temporary, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || attempt === MAX_RENAME_ATTEMPTS) throw error;
    }
}

export const totalBytes = (groups: GroupFile[]) => groups.reduce((total, { bytes }) => total + bytes, 0);
