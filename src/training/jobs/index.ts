/**
 * The `train` process of the job system: options, plan, modes, results and their merge. Invariant: each planned model ends exactly once,
 * as trained, skipped or failed. Imports `distributed`, `workers`, `transfer`, `texture`, `registry` and the folders below them.
 */
export { mergeResults } from './merge-results.js';
export { DEFAULT_SEED, validationTime } from './train-options.js';
export { trainProcess } from './train-process.js';
export { summariseReasons, type TrainResults } from './train-results.js';
export { reasonNotTrainable } from './trainability.js';
