/**
 * Work as durable jobs, on a single node (`local`) and in a cluster (`cluster`). Invariant: a state of a job is reported only after it is
 * on disk. Imports the parts `async`, `coordination`, `dht`, `grid` (types) and `storage`.
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
export {
  type ConcludeContext,
  type EventOptions,
  type FullJobContext,
  hasEnded,
  hasResults,
  type IdempotencyKey,
  type JobContext,
  type JobEvent,
  type JobService,
  jobEvents,
  type LineListener,
  LocalJobService,
  type LocalJobServiceOptions,
  type LogLine,
  type PrepareContext,
  type Process,
  retryJob,
  type StartedJob,
  type StartOptions,
  type Timed,
  verifyProcess,
} from './local/index.js';
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
} from './reason-tally.js';
