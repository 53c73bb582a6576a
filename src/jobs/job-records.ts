/** Job records on disk, and how long they are kept. */
import { messageOf, TilewrightError } from '../errors.js';
import type { Catalogue, JobRecord, LogRecord, Storage } from '../storage/index.js';
import { jobCrashedRepeatedly, jobDismissed, jobFailed, jobInterrupted } from './errors.js';
import { deleteLog, JobLog } from './job-log.js';
import type { Process } from './job-process.js';
import type { JobRegistry } from './job-registry.js';

/** A finished job is visible for this time. Afterwards every node answers that it does not exist. */
export const RETENTION_MS = 7 * 86_400_000;
/** Files and records are kept for this additional time, so that downloads in progress can finish. */
export const REMOVAL_DELAY_MS = 86_400_000;

type Finished = Pick<JobRecord, 'finished'>;

/** True if a job has become invisible. A job that has not ended never expires. */
export function hasExpired({ finished }: Finished, now = Date.now()): boolean {
  return finished !== undefined && finished <= now - RETENTION_MS;
}

/** True if the record, the log and the results of a job can be removed. */
export function isRemovable(job: Finished, now = Date.now()): boolean {
  return hasExpired(job, now - REMOVAL_DELAY_MS);
}

/** A job that was running when the process died this many times in a row is assumed to be the cause. */
const MAX_CRASHES = 3;

export function hasEnded({ status }: JobRecord): boolean {
  return status !== 'accepted' && status !== 'running';
}

/** True if the job has results, which a cancelled job may have too. */
export function hasResults({ status, results }: JobRecord): boolean {
  return status === 'successful' || (status === 'dismissed' && results !== undefined);
}

/** The error of a job, as its record stores it. */
export function jobError(error: unknown): { code: string; message: string } {
  const { code, message } =
    error instanceof TilewrightError ? error : jobFailed.because(error, messageOf(error));
  return { code, message };
}

/** The fields of a job that waits, for the first time or again. */
export const QUEUED_STATE = {
  status: 'accepted',
  tiles: { total: 0, done: 0, failed: 0, skipped: 0 },
  share: undefined,
  message: '',
} as const satisfies Partial<JobRecord>;

/** The log line of a new state of a job. */
export function stateLine({ status, error, updated }: JobRecord, remark?: string): LogRecord {
  const text = error ? `${status}: ${error.message} [${error.code}]` : status;
  const level = status === 'failed' ? 'error' : status === 'dismissed' ? 'warning' : 'info';
  return { time: updated, level, text: remark ? `${text}: ${remark}` : text, status };
}

/** Jobs, newest first, from before the job `before` on. Omits expired jobs, and damaged records, which `verify` reports. */
export async function listJobs(
  { jobs }: Catalogue,
  limit: number,
  before: string | undefined,
  wanted: (job: JobRecord) => boolean,
): Promise<JobRecord[]> {
  const records: JobRecord[] = [];
  for await (const { record } of jobs.scan({ before, reverse: true })) {
    if (record && !hasExpired(record) && wanted(record)) records.push(record);
    if (records.length === limit) break;
  }
  return records;
}

/** A job of a dead process that is resumed. */
export interface OrphanedJob {
  record: JobRecord;
  process: Process;
  log: JobLog;
}

/**
 * Recovers the jobs that a dead process has left waiting or running. Resumable jobs are queued again, in the order in which they were
 * accepted; the others are marked as failed, with TW_JOB_INTERRUPTED or TW_JOB_CRASHES.
 */
export async function orphanedJobs(
  storage: Storage,
  processes: Process[],
  registry: JobRegistry | undefined,
): Promise<OrphanedJob[]> {
  const { catalogue } = storage;
  const orphaned: OrphanedJob[] = [];
  for await (const { record } of catalogue.jobs.scan()) {
    if (!record || hasEnded(record)) continue;
    if (registry && !(await registry.isLedHere(record))) {
      await deleteJob(catalogue, record.id);
      continue;
    }
    const process = processes.find(({ id }) => id === record.process);
    const log = await JobLog.open(catalogue, record.id);
    const next = recoveredRecord(record, process);
    if (next.status !== record.status) {
      log.add(stateLine(next, hasEnded(next) ? undefined : 'restarted, because the node had stopped'));
      next.lines = log.last;
      await catalogue.write([catalogue.jobs.set(next.id, next), ...log.changes()]);
      await registry?.publish(next, true);
    }
    if (process && !hasEnded(next)) orphaned.push({ record: next, process, log });
    else for (const name of [next.id, ...(next.uploads ?? [])]) await storage.scratch.remove(name);
  }
  return orphaned;
}

/** Removes the record and the log of a job from this node. */
export async function deleteJob(catalogue: Catalogue, id: string): Promise<void> {
  await catalogue.write([catalogue.jobs.delete(id), ...(await deleteLog(catalogue, id))]);
}

/** The record of a job that ends now with an error. */
export function endedWith(record: JobRecord, error: TilewrightError): JobRecord {
  const now = Date.now();
  return {
    ...record,
    status: jobDismissed.is(error) ? 'dismissed' : 'failed',
    finished: now,
    updated: now,
    error: jobError(error),
    ...(record.uploads && { given: undefined }),
  };
}

/** The record of a job after its process died. */
export function recoveredRecord(record: JobRecord, process: Process | undefined): JobRecord {
  const crashes = (record.crashes ?? 0) + (record.status === 'running' ? 1 : 0);
  const failed = (error: TilewrightError) => endedWith({ ...record, crashes }, error);
  if (!record.resumable || !process) return failed(jobInterrupted(record.id));
  if (crashes >= MAX_CRASHES) return failed(jobCrashedRepeatedly(record.id, crashes));
  return record.status === 'accepted' ? record : { ...record, ...QUEUED_STATE, crashes, updated: Date.now() };
}
