/** Stops writes before the disk is full, so that the catalogue always has room to record what has happened. */
import { statfs } from 'node:fs/promises';
import { diskLow, onDisk } from '../errors.js';

/** Kept free unless told otherwise: this share of the disk, and no more than so many bytes. */
const SHARE = 0.02;
const MOST = 2e9;
/** Where room is made, this share of the reserve more becomes free, so that it need not be made for every file. */
const MORE = 0.1;
/** The disk is asked at most this often, ms: one second of writing is far less than the reserve of a disk. */
const INTERVAL = 1000;

/** Invariant: `free` is what the disk said at `askedAt`, less what callers have announced since. */
export class DiskReserve {
  /** Frees so many bytes if it can: where there is a cache, it shrinks before a write is refused. */
  relief: ((bytes: number) => Promise<void>) | undefined;
  private free = 0;
  private askedAt = -Infinity;
  private asking: Promise<void> | undefined;

  constructor(
    private readonly dir: string,
    /** Bytes to keep free; 0 keeps none. By default 2 % of the disk, 2 GB at most. */
    private bytes?: number,
  ) {}

  /** Throws TW_STORAGE_DISK_LOW where `bytesToCome` more would leave less than the reserve free. Cheap. */
  async check(bytesToCome = 0): Promise<void> {
    if (this.bytes === 0) return;
    if (performance.now() - this.askedAt >= INTERVAL) await this.ask();
    await this.makeRoom(bytesToCome);
    this.refuseTooMany(bytesToCome);
    this.free -= bytesToCome;
  }

  /** Asks the disk now, and announces nothing: for what will be announced as it is written. Throws TW_STORAGE_DISK_LOW. */
  async require(bytes: number): Promise<void> {
    if (this.bytes === 0) return;
    await this.ask();
    await this.makeRoom(bytes);
    this.refuseTooMany(bytes);
  }

  private async makeRoom(bytes: number): Promise<void> {
    const kept = this.bytes ?? 0;
    const lacking = kept + bytes - this.free;
    if (lacking <= 0 || !this.relief) return;
    await this.relief(lacking + MORE * kept);
    await this.ask();
  }

  private refuseTooMany(bytes: number): void {
    const kept = this.bytes ?? 0;
    if (this.free - bytes < kept) throw diskLow(this.dir, Math.max(0, this.free), kept + bytes);
  }

  /** Callers that come meanwhile wait for the same answer. */
  private ask(): Promise<void> {
    this.asking ??= this.askDisk().finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  private async askDisk(): Promise<void> {
    const { bavail, blocks, bsize } = await onDisk(this.dir, () => statfs(this.dir));
    this.free = bavail * bsize;
    this.askedAt = performance.now();
    this.bytes ??= Math.min(MOST, SHARE * blocks * bsize);
  }
}
