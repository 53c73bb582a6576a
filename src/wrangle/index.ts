export type { WrangleResults } from './derive.js';
export { type FillInputs, fillProcess } from './fill-process.js';
export { WrangleWorkers } from './workers.js';
