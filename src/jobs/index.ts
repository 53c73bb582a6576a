/**
 * Work as durable jobs: start, progress, log, events, cancel, retry, retention. The files of this folder are those of one process;
 * `cluster/` implements the interface `JobRegistry` for a cluster, whose nodes all know, share and take over the jobs. Invariants: a state
 * of a job is reported only after it is on disk; the records of a job are written in the order of its states, and none follows the final
 * one; in a cluster a job has one leader, the node named by its entry, and only that node changes the entry. Imports the parts `async`,
 * `coordination`, `dht`, `grid` (types) and `storage`.
 */

export { ClusterJobService } from './cluster/service.js';
export {
  ALL_GATHER_PATH,
  CANCEL_TASK_PATH,
  TASK_PATH,
  type TaskEvent,
  TaskExecutor,
  type TaskRequest,
  taskErrorEvent,
} from './cluster/tasks.js';
export { FailedWithResults, jobInterrupted, jobNotFound, jobNotReady, leaderUnavailable } from './errors.js';
export type { LineListener } from './execution.js';
export { LocalJobService, type LocalJobServiceOptions } from './local-service.js';
export type { LogLine } from './log.js';
export type {
  ConcludeContext,
  FullJobContext,
  JobContext,
  PrepareContext,
  Process,
  Timed,
} from './process.js';
export {
  addFailure,
  addFetched,
  addSkipped,
  emptyCounts,
  firstReasons,
  MAX_LISTED_FAILURES,
  mergeCounts,
  mergeSkipped,
  recordWarnings,
  sumOf,
  TILE_COUNTS_SCHEMA,
  type TileCounts,
  verifyProcess,
} from './process.js';
export type { IdempotencyKey } from './records.js';
export { hasEnded, hasResults } from './records.js';
export type { JobService, ReportedJob, StartedJob, StartOptions } from './service.js';
export { type EventOptions, type JobEvent, jobEvents, retryJob } from './service.js';
