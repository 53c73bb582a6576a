/** Fetches the files of a node's own tiles before readers need them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { mapConcurrent } from '../../async/index.js';
import type { ColumnIndex, Cursor } from '../column-index/index.js';
import { storeLost } from '../errors.js';
import type { TileRecord } from '../records/index.js';
import { type Fetcher, totalBytes } from './cache-fetcher.js';
import type { FileCache } from './file-cache.js';

/** Maximum number of concurrent fetches. */
const CONCURRENCY = 2;
/** Maximum rate: readers and ingest come first. */
const BYTES_PER_S = 50e6;
/** Maximum rate while this node writes. It is above 0, so that prefetching progresses even if the writes never end. */
const BYTES_PER_S_WHILE_WRITING = 2e6;
const PAGE_TILES = 64;
/** Maximum length of the queue of new tiles. If more arrive, all tiles are scanned again. */
const MAX_NEW_TILES = 10_000;
const POLL_INTERVAL_MS = 20;
const ERROR_PAUSE_MS = 10_000;

/** The tiles of a node. */
export interface PrefetchSource {
  readonly index: ColumnIndex;
  getTiles(ids: string[]): Promise<TileRecord[]>;
}

export interface PrefetcherOptions {
  storage: PrefetchSource;
  files: Fetcher;
  cache: FileCache;
  /** Resolves when the local files are known. */
  begin: Promise<void>;
  /** True while this node ingests scenes or derives tiles. */
  isWriting: () => boolean;
  onFailure: (error: unknown) => void;
}

/**
 * Fetches new tiles first, in descending order; then all tiles, newest first, as long as nothing has to be evicted for them. It
 * pauses while readers wait for files, and is slow while the node writes. It keeps no state besides the cached files, so it can be
 * stopped and restarted at any time.
 */
export class Prefetcher {
  private newTiles: TileRecord[] = [];
  /** Next page of the scan of all tiles; undefined at its start, null if no scan is due. */
  private scanCursor: Cursor | undefined | null = undefined;
  private tokenDebtBytes = 0;
  private debtUpdatedAt = performance.now();
  private wake: () => void = () => {};
  private readonly closing = new AbortController();
  private readonly running: Promise<void>;

  constructor(private readonly options: PrefetcherOptions) {
    this.running = options.begin.then(() => this.run());
  }

  /** Adds new tiles. */
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
    // Before the await: `add` may start a new scan in the meantime.
    this.scanCursor = next ?? null;
    if (!(await this.prefetch(await storage.getTiles(ids), false))) this.scanCursor = null;
  }

  /** Returns false if no room is left and nothing may be evicted for these tiles. */
  private async prefetch(tiles: TileRecord[], mayReplace: boolean): Promise<boolean> {
    const { files, cache, storage } = this.options;
    const incomplete = tiles.filter(
      (tile) => storage.index.has(tile.id) && files.missing(tile, tile.groups).length > 0,
    );
    let hasRoom = true;
    await mapConcurrent(incomplete, CONCURRENCY, async (tile) => {
      const bytes = totalBytes(files.missing(tile, tile.groups));
      if (!mayReplace && !cache.hasRoom(bytes)) hasRoom = false;
      if (!hasRoom) return;
      await this.waitForTurn(bytes);
      try {
        await files.prefetch(tile, tile.groups);
      } catch (error) {
        // The other files can still be fetched.
        if (!storeLost.is(error)) throw error;
        this.options.onFailure(error);
      }
    });
    return hasRoom;
  }

  /** Waits until no reader waits for files, and the rate allows more bytes. */
  private async waitForTurn(bytes: number): Promise<void> {
    const { signal } = this.closing;
    // In short steps, because the rate rises when the node stops writing.
    while (this.currentDebtBytes() > 0) await sleep(POLL_INTERVAL_MS, undefined, { signal });
    this.tokenDebtBytes += bytes;
    while (this.options.files.foregroundFetches > 0) await sleep(POLL_INTERVAL_MS, undefined, { signal });
    signal.throwIfAborted();
  }

  /** Bytes fetched in excess of the rate. */
  private currentDebtBytes(): number {
    const now = performance.now();
    const rate = this.options.isWriting() ? BYTES_PER_S_WHILE_WRITING : BYTES_PER_S;
    this.tokenDebtBytes = Math.max(0, this.tokenDebtBytes - ((now - this.debtUpdatedAt) / 1000) * rate);
    this.debtUpdatedAt = now;
    return this.tokenDebtBytes;
  }
}
