/**
 * The `train` process of the job system: options, plan, modes, results and their merge. Invariant: each planned model ends exactly once,
 * as trained, skipped or failed. Imports `distributed`, `workers`, `transfer`, `texture`, `registry` and the folders below them.
 */
export { mergeResults } from './merge-train-results.js';
export { DEFAULT_SEED, validationTime } from './train-job-inputs.js';
export { summariseReasons, type TrainResults } from './train-job-results.js';
export { reasonNotTrainable } from './train-job-trainability.js';
export { trainProcess } from './train-process.js';
