/** The files of tiles on a node whose tiles are in a shared store: a cache, with what fetches into it and what makes room. */
import type { Catalogue } from '../catalogue/catalogue.js';
import type { DiskReserve } from '../files/disk-reserve.js';
import type { ObjectStore } from '../object-store/object-store.js';
import { Fetcher } from './fetcher.js';
import { FileCache } from './file-cache.js';
import { Prefetcher, type PrefetchSource } from './prefetcher.js';

/** The node's own folder and what it holds. */
interface CacheFolder extends PrefetchSource {
  readonly dir: string;
  readonly catalogue: Catalogue;
  readonly reserve: DiskReserve;
}

export class TileCache {
  readonly cache: FileCache;
  readonly fetcher: Fetcher;
  readonly prefetcher: Prefetcher;
  /** The names of what lay there at start. */
  private readonly loaded: Promise<void>;

  /** `limit` is how many bytes they may take; `onFailure` is told what goes wrong in the background, which makes room for writes. */
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

  /** Folders of tiles that are committed, and in the shared store: they may go when room is needed. */
  async addCommitted(folders: string[]): Promise<void> {
    // They are durable already, so that nobody has to hear of it here.
    await this.cache.add(folders.filter((folder) => folder.startsWith('tiles/'))).catch(this.onFailure);
  }

  async close(): Promise<void> {
    await this.cache.close();
    await this.prefetcher.close();
    await this.loaded;
  }
}
