/**
 * Makes one tile from other tiles, in worker threads: reads, reprojects or composites, and encodes. Invariant: a made tile depends only on
 * its input files. Imports files of a folder above (types) and the parts `grid`, `ingest`, `raster` and `storage` (types).
 */

export { cutTile } from './cut-derived-tile.js';
export { cellSizes, tileBytes } from './derived-tile-cell-sizes.js';
export { validityStatistics } from './derived-valid-percent.js';
export { fillTile } from './fill-tile.js';
export { conversion, resizeNearest } from './fill-tile-gaps.js';
export { maskRecord, nodataValue, type TileGroupFile } from './read-derive-tile.js';
