/**
 * Work as durable jobs: start, progress, log, events, cancel, retry, retention. The files of this folder are those of one process;
 * `cluster` implements the interface `JobRegistry` for a cluster. Invariants: a state of a job is reported only after it is on disk; the
 * records of a job are written in the order of its states, and none follows the final one. Imports the parts `async`, `coordination`,
 * `dht`, `grid` (types) and `storage`.
 */
export {
  ALL_GATHER_PATH,
  CANCEL_TASK_PATH,
  ClusterJobService,
  TASK_PATH,
  type TaskEvent,
  TaskExecutor,
  type TaskRequest,
  taskErrorEvent,
} from './cluster/index.js';
export { FailedWithResults, jobInterrupted, jobNotFound, jobNotReady, leaderUnavailable } from './errors.js';
export { type EventOptions, type JobEvent, jobEvents } from './job-events.js';
export type { LineListener } from './job-execution.js';
export type { IdempotencyKey } from './job-idempotency-keys.js';
export type { LogLine } from './job-log.js';
export type {
  ConcludeContext,
  FullJobContext,
  JobContext,
  PrepareContext,
  Process,
  Timed,
} from './job-process.js';
export {
  addFailure,
  addFetched,
  addSkipped,
  emptyCounts,
  firstReasons,
  MAX_LISTED_FAILURES,
  mergeCounts,
  mergeSkipped,
  sumOf,
  TILE_COUNTS_SCHEMA,
  type TileCounts,
} from './job-reason-tally.js';
export { hasEnded, hasResults } from './job-records.js';
export type { JobService, StartedJob, StartOptions } from './job-service.js';
export { verifyProcess } from './job-verify-process.js';
export { LocalJobService, type LocalJobServiceOptions } from './local-job-service.js';
export { retryJob } from './retry-job.js';
