/**
 * Jobs of one process: start, progress, log, events, cancel, retry, retention. Invariant: the records of a job are written in the order of
 * its states, and none follows the final one. `jobs/cluster` implements the interface `JobRegistry`. Imports the parts `async`, `dht`
 * (types), `grid` (types) and `storage`.
 */

export { type EventOptions, type JobEvent, jobEvents } from './job-events.js';
export type { JobListener, LineListener } from './job-execution.js';
export { GC_INTERVAL_MS } from './job-gc.js';
export { type IdempotencyKey, KEY_TTL_MS, keyHash } from './job-idempotency-keys.js';
export { type LogLine, MAX_LINES, readLog } from './job-log.js';
export {
  type ConcludeContext,
  concludeResults,
  type FullJobContext,
  type JobContext,
  type JobProgress,
  type PrepareContext,
  type Process,
  runLocally,
  type Timed,
} from './job-process.js';
export { endedWith, hasEnded, hasResults, recoveredRecord } from './job-records.js';
export type { JobRegistry } from './job-registry.js';
export { hasExpired, isRemovable } from './job-retention.js';
export type { JobFile, JobService, StartedJob, StartOptions } from './job-service.js';
export { LocalJobService, type LocalJobServiceOptions } from './local-job-service.js';
export { retryJob } from './retry-job.js';
export { verifyProcess } from './verify-job.js';
