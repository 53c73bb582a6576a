/**
 * The `predict` process of the job system: plans the tiles, and makes them in child processes. Invariant: a tile is made only from tiles
 * with the band values that the model was trained on. Imports `inference`, `registry`, `models` and `data`.
 */
export { type PredictResults, predictProcess } from './predict-process.js';
