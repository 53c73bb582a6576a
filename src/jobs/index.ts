export { ClusterJobs, type ClusterJobsOptions } from './cluster/cluster-job-service.js';
export {
  CANCEL_PATH,
  type ShareLine,
  type ShareRequest,
  Shares,
  shareError,
  WORDS_PATH,
  WORK_PATH,
} from './cluster/task-executor.js';
export { FailedWithResults, homeAway, jobInterrupted, jobNotFound, jobNotReady } from './errors.js';
export type { RequestKey } from './local/idempotency-keys.js';
export { type EventOptions, type JobEvent, jobEvents } from './local/job-events.js';
export type { LogLine } from './local/job-log.js';
export { hasEnded } from './local/job-records.js';
export type { JobFile, JobsView } from './local/job-service.js';
export { Jobs, type JobsOptions, type StartOptions } from './local/local-job-service.js';
export type {
  ConcludeContext,
  JobContext,
  PrepareContext,
  Process,
  Timed,
  WholeContext,
} from './local/process.js';
export { verifyProcess } from './local/verify-process.js';
