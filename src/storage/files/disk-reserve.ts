/** Refuses writes before the disk is full, so that the catalogue always has room to record what has happened. */
import { statfs } from 'node:fs/promises';
import { diskLow } from '../errors.js';
import { onDisk } from './disk-errors.js';

/** Default reserve: this fraction of the disk, and at most this many bytes. */
const RESERVE_FRACTION = 0.02;
const MAX_RESERVE_BYTES = 2e9;
/** Extra fraction of the reserve that an eviction frees, so that not every file causes one. */
const EXTRA_FRACTION = 0.1;
/** The free space is read at most this often: one second of writing is far less than the reserve. */
const REFRESH_INTERVAL_MS = 1000;

/** Invariant: `free` is the free space at `refreshedAt`, less the bytes that callers have announced since. */
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
      await this.evict(lacking + EXTRA_FRACTION * kept);
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
