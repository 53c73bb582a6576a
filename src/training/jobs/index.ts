/**
 * The `train` process of the job system: options, plan, modes, results and their merge. Invariant: each planned model ends exactly once, as
 * trained, skipped or failed. Imports the folders `adaptation`, `data`, `distributed`, `evaluation`, `learners`, `models`, `patches`,
 * `registry`, `texture` (types), `transfer` and `train-cell` and the parts `async`, `derive`, `engines`, `jobs` (types), `query`, `raster`
 * and `storage`.
 */

export { DEFAULT_SEED, validationTime } from './train-job-inputs.js';
export { addModel, emptyResults, mergeResults } from './train-job-merge.js';
export { summariseReasons, type TrainResults } from './train-job-results.js';
export { reasonNotTrainable } from './train-job-trainability.js';
export { trainProcess } from './train-process.js';
