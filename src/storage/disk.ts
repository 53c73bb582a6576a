/** Errors of the disk as errors with stable codes, and the free space that writes must leave on it. */

import { statfs } from 'node:fs/promises';
import { messageOf, TilewrightError } from '../errors.js';
import { diskLow, storageCorrupt, storageFull, storageIo, storageLocked, storageReadOnly } from './errors.js';

const DISK_FULL = /No space left on device|Disk quota exceeded/;
const READ_ONLY_DISK = /Read-only file system/;
const NO_PERMISSION = /Permission denied|Operation not permitted/;

/** `tilewright verify` cannot open a damaged catalogue. */
const CATALOGUE_REMEDY =
  'Restore the data folder from a backup, or ingest the scenes into another folder with --data.';

/**
 * The error that a user sees if the file system or LevelDB throws `error` for `dir`. LevelDB reports the errno only in its
 * message, and `level` wraps its error as the cause of another one. Other errors are returned unchanged.
 */
export function asStorageError(error: unknown, dir: string): unknown {
  if (error instanceof TilewrightError) return error;
  const chain: { code: string; message: string }[] = [];
  for (let e = error; e instanceof Error; e = e.cause)
    chain.push({ code: String((e as NodeJS.ErrnoException).code ?? ''), message: messageOf(e) });
  const some = (codes: string[], text?: RegExp) =>
    chain.some((e) => codes.includes(e.code) || (e.code.startsWith('LEVEL_') && text?.test(e.message)));

  if (some(['LEVEL_LOCKED'])) return storageLocked.because(error, dir, 'another process');
  if (some(['ENOSPC', 'EDQUOT'], DISK_FULL)) return storageFull.because(error, dir);
  if (some(['EROFS'], READ_ONLY_DISK)) return storageReadOnly.because(error, dir, true);
  if (some(['EACCES', 'EPERM'], NO_PERMISSION)) return storageReadOnly.because(error, dir, false);
  const isMissing = chain.some((e) => e.message.includes('create_if_missing is false'));
  if (isMissing || some(['LEVEL_CORRUPTION'], /Corruption/))
    return storageCorrupt.because(error, 'the catalogue', dir, CATALOGUE_REMEDY);
  const last = chain.at(-1);
  if (last && chain.some((e) => /^(E[A-Z0-9]+|LEVEL_.*)$/.test(e.code)))
    return storageIo.because(error, dir, last.message);
  return error;
}

/** The error of a write that is refused because an earlier write, which failed with `failure`, may have torn the log. */
export function writesStopped(failure: unknown, dir: string): unknown {
  if (!(failure instanceof TilewrightError)) return failure;
  const { code, status, message } = failure;
  const text = `${dir} accepts no writes until the node is started again, because an earlier write failed: ${message}`;
  return new TilewrightError(code, status, text, { cause: failure });
}

/** Runs `work` and converts its errors with `asStorageError`. */
export async function onDisk<T>(dir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asStorageError(error, dir);
  }
}

/** True if the file system reports that nothing has this name. */
export function isMissingFile(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code));
}

/** The result of a call of the file system; `fallback` if nothing has its name. */
export async function orIfMissing<T, F>(call: Promise<T>, fallback: F): Promise<T | F> {
  try {
    return await call;
  } catch (error) {
    if (isMissingFile(error)) return fallback;
    throw error;
  }
}

/** Default reserve: this fraction of the disk, and at most this many bytes. */
const RESERVE_FRACTION = 0.02;
const MAX_RESERVE_BYTES = 2e9;
/** Extra fraction of the reserve that an eviction frees, so that not every file causes one. */
const EVICTION_SLACK = 0.1;
/** The free space is read at most this often: one second of writing is far less than the reserve. */
const REFRESH_INTERVAL_MS = 1000;

/**
 * Refuses writes before the disk is full, so that the catalogue always has room to record what has happened. Invariant: `free` is the free
 * space at `refreshedAt`, less the bytes that callers have announced since.
 */
export class DiskReserve {
  /** Frees up to this many bytes. Set by the cache, which shrinks before a write is refused. */
  evict: ((bytes: number) => Promise<void>) | undefined;
  private free = 0;
  private refreshedAt = -Infinity;
  private refreshing: Promise<void> | undefined;

  constructor(
    private readonly dir: string,
    /** Bytes to keep free; 0 disables the check. By default 2 % of the disk, 2 GB at most. */
    private bytes?: number,
  ) {}

  /** Announces a write of `bytesToCome`. Throws TW_STORAGE_DISK_LOW if it would leave less than the reserve free. Cheap. */
  async check(bytesToCome = 0): Promise<void> {
    if (this.bytes === 0) return;
    if (performance.now() - this.refreshedAt >= REFRESH_INTERVAL_MS) await this.refresh();
    await this.makeRoom(bytesToCome);
    this.free -= bytesToCome;
  }

  /** Like `check`, but reads the free space now and announces nothing: each part of the write announces itself. */
  async require(bytes: number): Promise<void> {
    if (this.bytes === 0) return;
    await this.refresh();
    await this.makeRoom(bytes);
  }

  /** Free bytes of the disk, at most a second old, and the bytes that writes must leave free. Throws the TW_STORAGE_ errors of the disk. */
  async state(): Promise<{ freeBytes: number; reserveBytes: number }> {
    if (performance.now() - this.refreshedAt >= REFRESH_INTERVAL_MS) await this.refresh();
    return { freeBytes: Math.max(0, this.free), reserveBytes: this.bytes ?? 0 };
  }

  /** Lets the cache shrink if a write would leave less than the reserve free; throws TW_STORAGE_DISK_LOW if that is not enough. */
  private async makeRoom(bytes: number): Promise<void> {
    const kept = this.bytes ?? 0;
    const lacking = kept + bytes - this.free;
    if (lacking > 0 && this.evict) {
      await this.evict(lacking + EVICTION_SLACK * kept);
      await this.refresh();
    }
    if (this.free - bytes < kept) throw diskLow(this.dir, Math.max(0, this.free), kept + bytes);
  }

  /** Concurrent callers wait for the same result. */
  private refresh(): Promise<void> {
    this.refreshing ??= this.readFreeBytes().finally(() => {
      this.refreshing = undefined;
    });
    return this.refreshing;
  }

  private async readFreeBytes(): Promise<void> {
    const { bavail, blocks, bsize } = await onDisk(this.dir, () => statfs(this.dir));
    this.free = bavail * bsize;
    this.refreshedAt = performance.now();
    this.bytes ??= Math.min(MAX_RESERVE_BYTES, RESERVE_FRACTION * blocks * bsize);
  }
}
