/** Fetches the files of a node's own tiles before somebody asks for them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { mapConcurrent } from '../../async/index.js';
import type { TileRecord } from '../catalogue/records.js';
import type { ColumnIndex } from '../column-index/column-index.js';
import type { Position } from '../column-index/query/sort-order.js';
import { storeLost } from '../errors.js';
import { bytesOf, type FetchedFiles } from './fetcher.js';
import type { FileCache } from './file-cache.js';

/** Files on their way at once. */
const LANES = 2;
/** Bytes a second: readers and ingest come first. */
const RATE = 50e6;
/** The same while this node writes, so that it gets somewhere also where that never ends. */
const RATE_BESIDE_WRITES = 2e6;
const PAGE = 64;
/** New tiles that are remembered one by one; more are found by a look at all. */
const MOST_NEW = 10_000;
const POLL = 20;
/** After an error of the store, ms. */
const PAUSE = 10_000;

/** The tiles of the node. */
export interface TilesToWarm {
  readonly index: ColumnIndex;
  getTiles(ids: string[]): Promise<TileRecord[]>;
}

export interface WarmingOptions {
  storage: TilesToWarm;
  files: FetchedFiles;
  cache: FileCache;
  /** When it is known what is here. */
  begin: Promise<void>;
  /** Whether this node takes in scenes, or makes tiles. */
  isWriting: () => boolean;
  onFailure: (error: unknown) => void;
}

/**
 * New tiles come first, the newest before the others; then all tiles, newest first, as long as nothing has to go for them. It
 * waits while readers wait for files, and goes slowly while the node writes. What it has done is seen by what is there, so it may be stopped and begun again.
 */
export class Warming {
  private fresh: TileRecord[] = [];
  /** Where the look at all tiles goes on; null where none is due. */
  private place: Position | undefined | null = undefined;
  private owed = 0;
  private paidAt = performance.now();
  private wake: () => void = () => {};
  private readonly closing = new AbortController();
  private readonly running: Promise<void>;

  constructor(private readonly options: WarmingOptions) {
    this.running = options.begin.then(() => this.run());
  }

  /** Tiles that have come. */
  add(tiles: TileRecord[]): void {
    if (tiles.length === 0) return;
    if (this.fresh.length + tiles.length <= MOST_NEW) this.fresh.push(...tiles);
    else this.place = undefined;
    this.wake();
  }

  async close(): Promise<void> {
    this.closing.abort();
    this.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    while (!signal.aborted)
      try {
        await this.step();
      } catch (error) {
        if (signal.aborted) return;
        this.options.onFailure(error);
        // It rejects only if the signal is aborted, and the loop checks the signal.
        await sleep(PAUSE, undefined, { signal }).catch(() => undefined);
      }
  }

  private async step(): Promise<void> {
    if (this.fresh.length > 0) {
      await this.warm(this.fresh.splice(-PAGE).reverse(), true);
      return;
    }
    if (this.place === null) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
      return;
    }
    const { storage } = this.options;
    const { ids, next } = storage.index.query({ after: this.place, limit: PAGE, count: false });
    // Where many tiles come meanwhile, all are looked at anew.
    this.place = next ?? null;
    if (!(await this.warm(await storage.getTiles(ids), false))) this.place = null;
  }

  /** False where no room was left and nothing may go for these. */
  private async warm(tiles: TileRecord[], mayReplace: boolean): Promise<boolean> {
    const { files, cache, storage } = this.options;
    const lacking = tiles.filter(
      (tile) => storage.index.has(tile.id) && files.lacking(tile, tile.groups).length > 0,
    );
    let hasRoom = true;
    await mapConcurrent(lacking, LANES, async (tile) => {
      const bytes = bytesOf(files.lacking(tile, tile.groups));
      if (!mayReplace && !cache.hasRoom(bytes)) hasRoom = false;
      if (!hasRoom) return;
      await this.turn(bytes);
      try {
        await files.warm(tile, tile.groups);
      } catch (error) {
        // The others are there to be fetched.
        if (!storeLost.is(error)) throw error;
        this.options.onFailure(error);
      }
    });
    return hasRoom;
  }

  /** Waits until nobody else waits for files, and so long that the rate is kept. */
  private async turn(bytes: number): Promise<void> {
    const { signal } = this.closing;
    // In short steps: a node that stops writing may go on faster.
    while (this.owing() > 0) await sleep(POLL, undefined, { signal });
    this.owed += bytes;
    while (this.options.files.awaited > 0) await sleep(POLL, undefined, { signal });
    signal.throwIfAborted();
  }

  /** Bytes that were fetched faster than the rate allows. */
  private owing(): number {
    const now = performance.now();
    const rate = this.options.isWriting() ? RATE_BESIDE_WRITES : RATE;
    this.owed = Math.max(0, this.owed - ((now - this.paidAt) / 1000) * rate);
    this.paidAt = now;
    return this.owed;
  }
}
