/** How long jobs, their logs and their results are kept, on a single node and in a cluster alike. */
import type { JobRecord } from '../../storage/index.js';

/** A finished job can be asked for during this time, ms. After it all nodes answer that there is no such job. */
export const RETENTION_MS = 7 * 86_400_000;
/** Files and records stay for this much longer, ms: a download of results that has begun can end. */
export const REMOVAL_DELAY_MS = 86_400_000;

type Finished = Pick<JobRecord, 'finished'>;

/** Whether a job is no longer shown. A job that has not ended never expires. */
export function hasExpired({ finished }: Finished, now = Date.now()): boolean {
  return finished !== undefined && finished <= now - RETENTION_MS;
}

/** Whether the record, the log and the results of a job can be removed. */
export function isRemovable(job: Finished, now = Date.now()): boolean {
  return hasExpired(job, now - REMOVAL_DELAY_MS);
}
