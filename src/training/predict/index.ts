/**
 * The `predict` process of the job system: plans the tiles, and makes them in child processes. Invariant: a tile is made only from tiles
 * with the band values that the model was trained on. Imports the folders `data`, `halo`, `inference`, `models` and `registry` (types)
 * and the parts `derive`, `engines`, `grid` (types), `ingest`, `jobs` (types), `query`, `raster` and `storage`.
 */
export { type PredictResults, predictProcess } from './predict-process.js';
