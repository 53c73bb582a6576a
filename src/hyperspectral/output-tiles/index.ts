/**
 * Makes the files of the tile that an analysis computes; tiles of spectra are written by rows of blocks. Runs in worker threads and child
 * processes. Invariant: pixels without input data have no value. Imports the folders `pixel-methods`, `spectra` (types) and
 * `spectrum-reading` and the parts `derive`, `imagery`, `ingest`, `raster` and `storage` (types).
 */
export { makeOutputTile, outputTileOfPlanes } from './make-spectral-map-tile.js';
export type { MapTask } from './spectral-map-task.js';
export { ScaleCheck } from './spectral-scale-check.js';
