/** Fetches the files of a node's own tiles before somebody asks for them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { mapConcurrent } from '../../async/index.js';
import type { TileRecord } from '../catalogue/records.js';
import type { ColumnIndex } from '../column-index/column-index.js';
import type { Cursor } from '../column-index/query/sort-order.js';
import { storeLost } from '../errors.js';
import { type Fetcher, totalBytes } from './fetcher.js';
import type { FileCache } from './file-cache.js';

/** Files on their way at once. */
const CONCURRENCY = 2;
/** Bytes a second: readers and ingest come first. */
const BYTES_PER_S = 50e6;
/** The same while this node writes, so that it gets somewhere also where that never ends. */
const BYTES_PER_S_WHILE_WRITING = 2e6;
const PAGE_TILES = 64;
/** New tiles that are remembered one by one; more are found by a look at all. */
const MAX_NEW_TILES = 10_000;
const POLL_INTERVAL_MS = 20;
/** After an error of the store, ms. */
const ERROR_PAUSE_MS = 10_000;

/** The tiles of the node. */
export interface PrefetchSource {
  readonly index: ColumnIndex;
  getTiles(ids: string[]): Promise<TileRecord[]>;
}

export interface PrefetcherOptions {
  storage: PrefetchSource;
  files: Fetcher;
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
export class Prefetcher {
  private newTiles: TileRecord[] = [];
  /** Where the look at all tiles goes on; null where none is due. */
  private scanCursor: Cursor | undefined | null = undefined;
  private tokenDebtBytes = 0;
  private debtUpdatedAt = performance.now();
  private wake: () => void = () => {};
  private readonly closing = new AbortController();
  private readonly running: Promise<void>;

  constructor(private readonly options: PrefetcherOptions) {
    this.running = options.begin.then(() => this.run());
  }

  /** Tiles that have come. */
  add(tiles: TileRecord[]): void {
    if (tiles.length === 0) return;
    if (this.newTiles.length + tiles.length <= MAX_NEW_TILES) this.newTiles.push(...tiles);
    else this.scanCursor = undefined;
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
        await sleep(ERROR_PAUSE_MS, undefined, { signal }).catch(() => undefined);
      }
  }

  private async step(): Promise<void> {
    if (this.newTiles.length > 0) {
      await this.prefetch(this.newTiles.splice(-PAGE_TILES).reverse(), true);
      return;
    }
    if (this.scanCursor === null) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
      return;
    }
    const { storage } = this.options;
    const { ids, next } = storage.index.query({ after: this.scanCursor, limit: PAGE_TILES, count: false });
    // Where many tiles come meanwhile, all are looked at anew.
    this.scanCursor = next ?? null;
    if (!(await this.prefetch(await storage.getTiles(ids), false))) this.scanCursor = null;
  }

  /** False where no room was left and nothing may go for these. */
  private async prefetch(tiles: TileRecord[], mayReplace: boolean): Promise<boolean> {
    const { files, cache, storage } = this.options;
    const lacking = tiles.filter(
      (tile) => storage.index.has(tile.id) && files.missing(tile, tile.groups).length > 0,
    );
    let hasRoom = true;
    await mapConcurrent(lacking, CONCURRENCY, async (tile) => {
      const bytes = totalBytes(files.missing(tile, tile.groups));
      if (!mayReplace && !cache.hasRoom(bytes)) hasRoom = false;
      if (!hasRoom) return;
      await this.waitForTurn(bytes);
      try {
        await files.prefetch(tile, tile.groups);
      } catch (error) {
        // The others are there to be fetched.
        if (!storeLost.is(error)) throw error;
        this.options.onFailure(error);
      }
    });
    return hasRoom;
  }

  /** Waits until nobody else waits for files, and so long that the rate is kept. */
  private async waitForTurn(bytes: number): Promise<void> {
    const { signal } = this.closing;
    // In short steps: a node that stops writing may go on faster.
    while (this.currentDebtBytes() > 0) await sleep(POLL_INTERVAL_MS, undefined, { signal });
    this.tokenDebtBytes += bytes;
    while (this.options.files.foregroundFetches > 0) await sleep(POLL_INTERVAL_MS, undefined, { signal });
    signal.throwIfAborted();
  }

  /** Bytes that were fetched faster than the rate allows. */
  private currentDebtBytes(): number {
    const now = performance.now();
    const rate = this.options.isWriting() ? BYTES_PER_S_WHILE_WRITING : BYTES_PER_S;
    this.tokenDebtBytes = Math.max(0, this.tokenDebtBytes - ((now - this.debtUpdatedAt) / 1000) * rate);
    this.debtUpdatedAt = now;
    return this.tokenDebtBytes;
  }
}
