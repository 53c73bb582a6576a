export { type CoalesceInputs, coalesceProcess } from './coalesce-process.js';
export type { WrangleResults } from './derive.js';
export { type FillInputs, fillProcess } from './fill-process.js';
export { type SplitInputs, splitProcess } from './split-process.js';
export type { TensorFile } from './tensor-file.js';
export { type TensorInputs, type TensorResults, tensorProcess } from './tensor-process.js';
export { WrangleWorkers } from './workers.js';
