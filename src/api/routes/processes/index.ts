/**
 * OGC API Processes: list, execution, jobs, results, logs, events. Invariant: a request for a job of another leader is forwarded to that
 * node. Imports files of a folder above (types), the folders `http`, `plugins` and `schemas` and the parts `dht`, `html`, `jobs`, `query`
 * and `storage` (types).
 */
export { type ExecuteRequest, wantedResultOptions } from './execute-process-request.js';
export { formatOptionalTime, type StatusInfo } from './job-status-response.js';
export { processRoutes } from './process-routes.js';
export {
  executionRoute,
  idempotencyKey,
  idempotencyKeyHeader,
  sendJob,
  startJob,
  startResponses,
  startWithFile,
} from './start-process-request.js';
