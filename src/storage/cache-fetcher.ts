/** Fetches files of tiles and models that other nodes made from the object store into the cache. */
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type DiskReserve, onDisk } from './disk.js';
import { storeLost, storeNotFound } from './errors.js';
import type { FileCache } from './file-cache.js';
import {
  type ModelVersion,
  modelFile,
  type RecordedFile,
  type TileVersion,
  tileFolder,
} from './file-names.js';
import { type Checksum, checksumFile, isIntact } from './files.js';
import type { ObjectStore } from './object-store/object-store.js';
import type { ModelFile } from './records.js';
import { scratchFile } from './scratch.js';

/** An eviction may remove a parent folder between two attempts. */
const MAX_RENAME_ATTEMPTS = 5;

/**
 * Invariant: a file has its final name only when it is complete, and is used only if its checksum matches its record. A file that
 * predates this process, or was prefetched, has its checksum verified before first use and is fetched again if it does not
 * match. Concurrent requests share one fetch of a file.
 */
export class Fetcher {
  /** Number of fetches that a reader waits for. */
  foregroundFetches = 0;
  private readonly inFlight = new Map<string, Promise<void>>();

  constructor(
    private readonly dir: string,
    private readonly objects: ObjectStore,
    private readonly cache: FileCache,
    private readonly reserve: DiskReserve,
  ) {}

  /**
   * Fetches the files of a tile that are not local. All stay until the returned function is called, and for ten seconds more. Throws
   * the TW_STORE_ errors, TW_STORAGE_DISK_LOW.
   */
  async fetchAndPin(tile: TileVersion, files: RecordedFile[]): Promise<() => void> {
    const release = this.cache.pin(tileFolder(tile));
    // All must have ended before the folder is released: others may still write into it when one fails.
    const results = await Promise.allSettled(files.map((file) => this.ensureLocal(tile, file)));
    const failed = results.find((one) => one.status === 'rejected');
    if (!failed) return release;
    release();
    throw failed.reason;
  }

  /** Fetches the files of a tile that are not local, before a reader needs them; returns their bytes. */
  async prefetch(tile: TileVersion, files: RecordedFile[]): Promise<number> {
    const release = this.cache.pin(tileFolder(tile), false);
    try {
      const missing = this.missing(tile, files);
      // A reader may have fetched one in the meantime.
      for (const file of missing)
        if (this.missing(tile, [file]).length > 0) await this.fetchOnce(tile, file, false);
      return totalBytes(missing);
    } finally {
      release();
    }
  }

  /** Files of a tile that are not known to be local. */
  missing(tile: TileVersion, files: RecordedFile[]): RecordedFile[] {
    const folder = tileFolder(tile);
    return files.filter(({ path, bytes }) => this.cache.file(folder, basename(path))?.bytes !== bytes);
  }

  private async ensureLocal(tile: TileVersion, file: RecordedFile): Promise<void> {
    if (await this.isLocal(tile, file)) {
      this.cache.hits++;
      return;
    }
    this.cache.misses++;
    this.foregroundFetches++;
    try {
      await this.fetchOnce(tile, file, true);
      // It may have been prefetched, without a verified checksum.
      if (!(await this.isLocal(tile, file))) await this.fetchOnce(tile, file, true);
    } finally {
      this.foregroundFetches--;
    }
  }

  /** True if a file is local and intact. */
  private async isLocal(tile: TileVersion, file: RecordedFile): Promise<boolean> {
    const folder = tileFolder(tile);
    const isVerified = () => this.cache.file(folder, basename(file.path))?.isVerified === true;
    await this.cache.evictionDone(folder);
    const path = join(this.dir, file.path);
    const size = await stat(path).then(
      (info) => info.size,
      () => undefined,
    );
    if (size !== file.bytes) return false;
    if (isVerified()) return true;
    await this.once(`sum of ${path}`, () => this.verifyChecksum(folder, file, path));
    return isVerified();
  }

  /** Marks a file as verified if its checksum matches. */
  private async verifyChecksum(folder: string, { bytes, crc32 }: RecordedFile, path: string): Promise<void> {
    if ((await onDisk(this.dir, () => checksumFile(path))) !== crc32) return;
    this.cache.set(folder, basename(path), { bytes, isVerified: true });
  }

  private fetchOnce(tile: TileVersion, file: RecordedFile, isVerified: boolean): Promise<void> {
    return this.once(file.path, () => this.fetch(tile, file, isVerified));
  }

  private async fetch(tile: TileVersion, file: RecordedFile, isVerified: boolean): Promise<void> {
    const folder = tileFolder(tile);
    const { path, bytes, crc32 } = file;
    await this.cache.evictionDone(folder);
    const unreserve = this.cache.reserveBytes(bytes);
    try {
      await this.cache.makeRoom();
      await this.download(path, isVerified ? { bytes, crc32 } : { bytes }, `tile ${tile.id}`);
      this.cache.set(folder, basename(path), { bytes, isVerified });
    } finally {
      unreserve();
    }
  }

  /** Fetches a file of a model unless an intact copy is local, where it stays. Files are small, so each call verifies the checksum. */
  async ensureModelFile(model: ModelVersion, file: ModelFile): Promise<void> {
    const name = modelFile(model, file.name);
    if (await onDisk(this.dir, () => isIntact(join(this.dir, name), file))) return;
    await this.once(name, () => this.download(name, file, `model ${model.model} of ${model.geocode}`));
  }

  private once(name: string, work: () => Promise<void>): Promise<void> {
    const running = this.inFlight.get(name);
    if (running) return running;
    const started = work().finally(() => this.inFlight.delete(name));
    this.inFlight.set(name, started);
    return started;
  }

  /** `owner` names the tile or model of the file for the message. */
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

/** Gives a file its name, and creates missing folders above it. */
async function moveTo(path: string, temporary: string): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      if (attempt > 1) await mkdir(dirname(path), { recursive: true });
      return await rename(temporary, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || attempt === MAX_RENAME_ATTEMPTS) throw error;
    }
}

export const totalBytes = (files: Checksum[]) => files.reduce((total, { bytes }) => total + bytes, 0);
