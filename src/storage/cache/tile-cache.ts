/** The tile files of a node with an object store: the cache, and the fetches into it. */
import type { Catalogue } from '../catalogue/index.js';
import { type DiskReserve, tileFolder } from '../files/index.js';
import type { ObjectStore } from '../object-store/index.js';
import type { TileRecord } from '../records/index.js';
import { Fetcher } from './cache-fetcher.js';
import { Prefetcher, type PrefetchSource } from './cache-prefetcher.js';
import { FileCache } from './file-cache.js';

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
