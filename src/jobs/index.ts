export type { JobContext, JobListener, JobProgress, JobWork } from './job-runner.js';
export { Jobs } from './job-runner.js';
export { hasEnded } from './job-store.js';
export type { Process } from './process.js';
export { startProcess } from './process.js';
export { verifyProcess } from './verify-process.js';
