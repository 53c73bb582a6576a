export { ClusterJobs, type ClusterJobsOptions } from './cluster-jobs.js';
export { FailedWithResults, homeAway, jobInterrupted, jobNotFound, jobNotReady } from './errors.js';
export { type EventOptions, type JobEvent, jobEvents } from './job-events.js';
export type { LogLine } from './job-log.js';
export { Jobs, type JobsOptions, type StartOptions } from './job-runner.js';
export { hasEnded } from './job-store.js';
export type { JobFile, JobsView } from './jobs-view.js';
export type {
  ConcludeContext,
  JobContext,
  PrepareContext,
  Process,
  Timed,
  WholeContext,
} from './process.js';
export {
  CANCEL_PATH,
  type ShareLine,
  type ShareRequest,
  Shares,
  shareError,
  WORDS_PATH,
  WORK_PATH,
} from './share.js';
export { Slots } from './slots.js';
export type { RequestKey } from './started-requests.js';
export { verifyProcess } from './verify-process.js';
