/**
 * Runs searches on one index, and on all owner nodes, whose messages are checked. Invariant: paging returns each tile that is present all
 * the time once. May import `aggregate`, `compile`, `filter`, `params`, `stac`, `dht` and `storage`.
 */
export { withFilterCheck } from './remote-search-queries.js';
export { createSearch, type Search, searchIndex, searchTiles } from './search-index.js';
export { type FoundTiles, type PartialAnswer, partialAnswer, TileFinder } from './search-tile-finder.js';
