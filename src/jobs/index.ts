export { FailedWithResults } from './errors.js';
export { type JobContext, Jobs } from './job-runner.js';
export { hasEnded } from './job-store.js';
export { type Process, startProcess } from './process.js';
export { Slots } from './slots.js';
export { verifyProcess } from './verify-process.js';
