/**
 * Local copies of tile files in an object store: fetch, pin, evict, prefetch. Invariant: a file has its final name only when it
 * is complete, and is used only if its checksum matches its record. May import `async`, `catalogue`, `column-index`,
 * `data-folder`, `files`, `object-store` and `records`.
 */
export type { Fetcher } from './cache-fetcher.js';
export { type PinnedTile, pinTiles } from './cache-pinned-tile.js';
export type { CacheStats } from './file-cache.js';
export { TileCache } from './tile-cache.js';
