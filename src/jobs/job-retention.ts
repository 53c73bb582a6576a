/** Retention of jobs, their logs and their results, on a single node and in a cluster. */
import type { JobRecord } from '../storage/index.js';

/** A finished job is visible for this time. Afterwards every node answers that it does not exist. */
export const RETENTION_MS = 7 * 86_400_000;
/** Files and records are kept for this additional time, so that downloads in progress can finish. */
export const REMOVAL_DELAY_MS = 86_400_000;

type Finished = Pick<JobRecord, 'finished'>;

/** True if a job is no longer visible. A job that has not ended never expires. */
export function hasExpired({ finished }: Finished, now = Date.now()): boolean {
  return finished !== undefined && finished <= now - RETENTION_MS;
}

/** True if the record, the log and the results of a job can be removed. */
export function isRemovable(job: Finished, now = Date.now()): boolean {
  return hasExpired(job, now - REMOVAL_DELAY_MS);
}
