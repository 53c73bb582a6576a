/**
 * Makes the files of the tile that an analysis computes; tiles of spectra are written by rows of blocks. Runs in worker threads and child
 * processes. Invariant: pixels without input data have no value. Imports the folders `pixel-methods`, `spectra` (types) and
 * `spectrum-reading` and the parts `derive`, `imagery`, `ingest`, `raster` and `storage` (types).
 */
export { makeOutputTile, outputTileOfPlanes } from './make-output-tile.js';
export { ScaleCheck } from './output-tile-scale-check.js';
export type { MapTask } from './output-tile-task.js';
