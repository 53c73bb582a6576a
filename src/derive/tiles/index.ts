/**
 * Makes one tile from other tiles, in worker threads: reads, reprojects or composites, and encodes. Invariant: a made tile depends only on
 * its input files. Imports the parts grid, ingest, raster and storage.
 */
export { cellSizes, tileBytes } from './cell-sizes.js';
export { cutTile } from './cut-tile.js';
export { fillTile } from './fill-tile.js';
export { conversion, resizeNearest } from './gap-filling.js';
export { maskRecord, nodataValue, type TileGroupFile } from './read-tile.js';
export { validityStatistics } from './valid-percent.js';
