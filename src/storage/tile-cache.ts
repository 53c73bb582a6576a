/** The tile files of a node with an object store: fetched on demand or in advance, and kept on the node while they are read. */

import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { mapConcurrent } from '../async/index.js';
import { Fetcher, totalBytes } from './cache-fetcher.js';
import type { Catalogue } from './catalogue.js';
import type { ColumnIndex } from './column-index/column-index.js';
import type { Cursor } from './column-index/sort-order.js';
import type { DiskReserve } from './disk.js';
import { storeLost } from './errors.js';
import { FileCache } from './file-cache.js';
import { filesOf, filesOfGroups, type TileLayout, tileFolder } from './file-names.js';
import type { ObjectStore } from './object-store/object-store.js';
import type { GroupRecord, TileRecord } from './records.js';

/** Maximum number of concurrent fetches. */
const CONCURRENT_FETCHES = 2;
/** Maximum rate: readers and ingest come first. */
const PREFETCHED_BYTES_PER_S = 50e6;
/** Maximum rate while this node writes. It is above 0, so that prefetching progresses even if the writes never end. */
const PREFETCHED_BYTES_PER_S_WHILE_WRITING = 2e6;
const PAGE_TILES = 64;
/** Maximum length of the queue of new tiles. If more arrive, all tiles are scanned again. */
const MAX_NEW_TILES = 10_000;
const POLL_INTERVAL_MS = 20;
const ERROR_PAUSE_MS = 10_000;

/** The tiles of a node. */
interface PrefetchSource {
  readonly index: ColumnIndex;
  getTiles(ids: string[]): Promise<TileRecord[]>;
}

interface PrefetcherOptions {
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
 * Fetches the files of a node's own tiles before readers need them. Fetches new tiles first, in descending order; then all tiles, newest
 * first, as long as nothing has to be evicted for them. It pauses while readers wait for files, and is slow while the node writes. It keeps
 * no state besides the cached files, so it can be stopped and restarted at any time.
 */
class Prefetcher {
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
      (tile) => storage.index.has(tile.id) && files.missing(tile, filesOf(tile)).length > 0,
    );
    let hasRoom = true;
    await mapConcurrent(incomplete, CONCURRENT_FETCHES, async (tile) => {
      const bytes = totalBytes(files.missing(tile, filesOf(tile)));
      if (!mayReplace && !cache.hasRoom(bytes)) hasRoom = false;
      if (!hasRoom) return;
      await this.waitForTurn(bytes);
      try {
        await files.prefetch(tile, filesOf(tile));
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
    const rate = this.options.isWriting() ? PREFETCHED_BYTES_PER_S_WHILE_WRITING : PREFETCHED_BYTES_PER_S;
    this.tokenDebtBytes = Math.max(0, this.tokenDebtBytes - ((now - this.debtUpdatedAt) / 1000) * rate);
    this.debtUpdatedAt = now;
    return this.tokenDebtBytes;
  }
}

/** The data folder of the node and its content. */
interface CacheFolder extends PrefetchSource {
  readonly dir: string;
  readonly catalogue: Catalogue;
  readonly reserve: DiskReserve;
}

export class TileCache {
  readonly cache: FileCache;
  readonly fetcher: Fetcher;
  readonly prefetcher: Prefetcher;
  /** Resolves when the files that were present at start are known. */
  private readonly loaded: Promise<void>;

  /** `limit` is in bytes. `onFailure` gets the errors of background work. */
  constructor(
    storage: CacheFolder,
    readonly objects: ObjectStore,
    limit: number | undefined,
    isWriting: () => boolean,
    private readonly onFailure: (error: unknown) => void,
  ) {
    const { dir, catalogue, reserve } = storage;
    const cache = new FileCache(dir, catalogue, (id) => storage.index.has(id), limit);
    reserve.evict = (bytes) => cache.evict(bytes);
    this.cache = cache;
    this.fetcher = new Fetcher(dir, objects, cache, reserve);
    this.loaded = cache.load().catch(onFailure);
    const files = this.fetcher;
    this.prefetcher = new Prefetcher({ storage, files, cache, begin: this.loaded, isWriting, onFailure });
  }

  /** Adds folders of tiles that are committed or handed over, which are in the object store: they may be evicted. */
  async add(folders: string[]): Promise<void> {
    // The tiles are durable already, so an error here does not concern the caller.
    await this.cache.add(folders.filter((folder) => folder.startsWith('tiles/'))).catch(this.onFailure);
  }

  /** To be called after a commit of any node with the new tiles of this node's slots. */
  addReplicated(tiles: TileRecord[]): void {
    this.cache.markCommitted(tiles.map(tileFolder));
    this.prefetcher.add(tiles);
  }

  async close(): Promise<void> {
    await this.cache.close();
    await this.prefetcher.close();
    await this.loaded;
  }
}

/** Files of tiles that stay on this node while they are read. */
export interface PinnedTile {
  /** Bytes that had to be fetched from the object store. */
  fetched: number;
  /** Allows the files to be evicted. */
  release(): void;
}

/** The methods of `Storage` that are used here. */
interface TileFiles {
  readonly dir: string;
  pinFiles(tile: TileLayout, groups: GroupRecord[]): Promise<() => void>;
}

/** Fetches missing files of tiles and pins them. If one fails, all are released. Throws the TW_STORE_ errors. */
export async function pinTiles(
  files: TileFiles,
  tiles: { tile: TileLayout; groups: GroupRecord[] }[],
): Promise<PinnedTile> {
  const releases: (() => void)[] = [];
  const release = () => {
    for (const one of releases) one();
  };
  let fetched = 0;
  try {
    for (const { tile, groups } of tiles) {
      const needed = filesOfGroups(tile, groups);
      const isLocal = await Promise.all(
        needed.map(({ path }) =>
          access(join(files.dir, path)).then(
            () => true,
            () => false,
          ),
        ),
      );
      releases.push(await files.pinFiles(tile, groups));
      fetched += totalBytes(needed.filter((_, i) => !isLocal[i]));
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
  tiles: { tile: TileLayout; groups: GroupRecord[] }[],
  work: (fetched: number) => Promise<T>,
): Promise<T> {
  const { fetched, release } = await pinTiles(files, tiles);
  try {
    return await work(fetched);
  } finally {
    release();
  }
}
