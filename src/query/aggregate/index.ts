/**
 * Counts over the tiles that match a filter (STAC aggregation). Invariant: counts of several nodes are merged exactly. Imports the folders
 * `compile` and `filter` (types) and the parts `grid` and `storage` (types).
 */
export * from './aggregate-tiles.js';
