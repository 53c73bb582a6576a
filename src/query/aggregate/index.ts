/**
 * Counts over the tiles that match a filter (STAC aggregation). Invariant: counts of several nodes are merged exactly. May import
 * `compile`, `filter`, `grid` and `storage`.
 */
export * from './aggregate-tiles.js';
