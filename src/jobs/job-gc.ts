/** Removes the records, logs, results and scratch files of old jobs from this node. */
import { firstVersionAt, type Storage } from '../storage/index.js';
import type { IdempotencyKeys } from './job-idempotency-keys.js';
import { deleteJob, isRemovable, REMOVAL_DELAY_MS, RETENTION_MS } from './job-records.js';

export const GC_INTERVAL_MS = 3_600_000;

export interface JobGcContext {
  storage: Storage;
  requests: IdempotencyKeys;
  /** True if this node is working on a job, possibly for another node. */
  isWorkedOn(job: string): boolean;
  /** False if the end of a job is not published. Its record must stay, because it shows that the job must not run again. */
  hasPublishedEnd(job: string): Promise<boolean>;
  /** Stops the collection early; the next one does the rest. */
  isStopping(): boolean;
}

/** Removes everything that is old enough at the time `now`, ms since 1970. */
export async function collectGarbage(context: JobGcContext, now: number): Promise<void> {
  const { storage, requests, isWorkedOn, hasPublishedEnd, isStopping } = context;
  const { catalogue } = storage;
  const before = now - REMOVAL_DELAY_MS - RETENTION_MS;
  // Ids sort by time: later jobs cannot have ended early enough, so few records are read.
  for await (const { key, record } of catalogue.jobs.scan({ before: firstVersionAt(before) })) {
    if (isStopping()) return;
    if (record && isRemovable(record, now) && (await hasPublishedEnd(key))) await deleteJob(catalogue, key);
  }
  const changes = requests.expire(now);
  if (changes.length > 0) await catalogue.write(changes);
  const isKept = async (job: string) => isWorkedOn(job) || catalogue.jobs.has(job);
  await storage.results.expire(before, isKept);
  await storage.scratch.expire(before, isKept);
}
