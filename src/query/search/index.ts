/**
 * Runs searches on one index, and on all owner nodes, whose messages are checked. Invariant: paging returns each tile that is present all
 * the time once. Imports files of a folder above, the folders `aggregate`, `compile`, `filter`, `params` and `stac-documents` and the parts
 * `dht` (types) and `storage`.
 */

export { createSearch, type Search, searchIndex, searchTiles } from './search-index.js';
export { withFilterCheck } from './search-remote-queries.js';
export { type FoundTiles, type PartialAnswer, partialAnswer, TileFinder } from './search-tile-finder.js';
