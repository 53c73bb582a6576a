/**
 * Local copies of tile files in an object store: fetch, pin, evict, prefetch. Invariant: a file has its final name only when it is
 * complete, and is used only if its checksum matches its record. Imports the folders `catalogue` (types), `column-index` (types),
 * `data-folder`, `files`, `object-store` (types) and `records` (types) and the part `async`.
 */

export type { Fetcher } from './cache-fetcher.js';
export type { CacheStats } from './file-cache.js';
export { type PinnedTile, pinTiles, withPinnedTiles } from './pinned-tile.js';
export { TileCache } from './tile-cache.js';
