/**
 * OGC API Processes: list, execution, jobs, results, logs, events. Invariant: a request for a job of another leader is forwarded to
 * that node. Imports `jobs`, `dht` and `html`.
 */
export { type ExecuteRequest, executeBody, wantedResultOptions } from './execute-request.js';
export { processRoutes } from './routes.js';
export {
  idempotencyKey,
  idempotencyKeyHeader,
  sendJob,
  startJob,
  startResponses,
  startWithFile,
} from './start-job.js';
export type { StatusInfo } from './status-info.js';
