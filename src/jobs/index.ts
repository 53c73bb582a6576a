export { ClusterJobService, type ClusterJobServiceOptions } from './cluster/cluster-job-service.js';
export {
  ALL_GATHER_PATH,
  CANCEL_TASK_PATH,
  TASK_PATH,
  type TaskEvent,
  TaskExecutor,
  type TaskRequest,
  taskErrorEvent,
} from './cluster/task-executor.js';
export { FailedWithResults, jobInterrupted, jobNotFound, jobNotReady, leaderUnavailable } from './errors.js';
export type { IdempotencyKey } from './local/idempotency-keys.js';
export { type EventOptions, type JobEvent, jobEvents } from './local/job-events.js';
export type { LineListener } from './local/job-execution.js';
export type { LogLine } from './local/job-log.js';
export { hasEnded } from './local/job-records.js';
export type { JobFile, JobService } from './local/job-service.js';
export {
  LocalJobService,
  type LocalJobServiceOptions,
  type StartOptions,
} from './local/local-job-service.js';
export type {
  ConcludeContext,
  FullJobContext,
  JobContext,
  PrepareContext,
  Process,
  Timed,
} from './local/process.js';
export { verifyProcess } from './local/verify-process.js';
