export type { JobContext, JobListener, JobProgress, JobWork } from './job-runner.js';
export { Jobs } from './job-runner.js';
export { hasEnded } from './job-store.js';
