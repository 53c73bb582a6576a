/** Job records on disk and how long they are kept, idempotency keys, and the registry that publishes jobs to other nodes. */

import { createHash } from 'node:crypto';
import { messageOf, TilewrightError } from '../errors.js';
import {
  type Catalogue,
  type CatalogueChange,
  firstVersionAt,
  type JobRecord,
  jobRecordOf,
  type LogRecord,
  type RequestRecord,
  type Storage,
  storageCorrupt,
} from '../storage/index.js';
import {
  idempotencyKeyReused,
  jobCrashedRepeatedly,
  jobDismissed,
  jobFailed,
  jobInterrupted,
} from './errors.js';
import { deleteLog, JobLog } from './log.js';
import type { FullJobContext, Process } from './process.js';

/** A finished job is visible for this time. Afterwards every node answers that it does not exist. */
const RETENTION_MS = 7 * 86_400_000;
/** Files and records are kept for this additional time, so that downloads in progress can finish. */
const REMOVAL_DELAY_MS = 86_400_000;

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

export function hasEnded({ status }: Pick<JobRecord, 'status'>): boolean {
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
  for await (const { record: summary } of jobs.scan({ before, reverse: true })) {
    const record = summary && jobRecordOf(summary);
    if (record && !hasExpired(record) && wanted(record)) records.push(record);
    if (records.length === limit) break;
  }
  return records;
}

/** A job of a dead process that is resumed. */
interface OrphanedJob {
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
  for await (const { record: summary } of catalogue.jobs.scan()) {
    if (!summary || hasEnded(summary)) continue;
    // `verify` reports a damaged record.
    const record = await catalogue.jobs.get(summary.id).catch(ignoreDamaged);
    if (!record) continue;
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
      await catalogue.write([...catalogue.jobs.set(next, record), ...log.changes()]);
      await registry?.publish(next, true);
    }
    if (process && !hasEnded(next)) orphaned.push({ record: next, process, log });
    else for (const name of [next.id, ...(next.uploads ?? [])]) await storage.scratch.remove(name);
  }
  return orphaned;
}

function ignoreDamaged(error: unknown): undefined {
  if (!storageCorrupt.is(error)) throw error;
}

/** Removes the record and the log of a job from this node. */
export async function deleteJob(catalogue: Catalogue, id: string): Promise<void> {
  await catalogue.write([...catalogue.jobs.delete(id), ...(await deleteLog(catalogue, id))]);
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

/** The connection of a node's job service to its cluster: publishes the jobs of the node to the other nodes, and distributes their work. */
export interface JobRegistry {
  /**
   * Publishes a new job. If the same request has already started another job, publishes nothing and returns the id of the other job.
   * Throws TW_JOB_KEY_REUSED.
   */
  accept(job: JobRecord, request?: IdempotencyKey): Promise<string | undefined>;
  /**
   * Undoes `accept` for a job that this node could not write to its disk, so that no node runs the job. `reason` is the error of the write.
   * Throws TW_JOB_PERHAPS_ACCEPTED if `accept` cannot be undone.
   */
  withdraw(job: string, reason: unknown, request?: IdempotencyKey): Promise<void>;
  /** Stores the inputs that `prepare` has completed, so that another node can take over the job with them. Returns the stored inputs. */
  storePrepared(job: string, given: unknown): Promise<unknown>;
  /** Publishes the record of a job, which must already be on disk. Throws TW_JOB_TAKEN_OVER if another node now leads the job. */
  publish(job: JobRecord, isNewState: boolean): Promise<void>;
  /**
   * True if this node still leads a job that an earlier process of this node has left unfinished. Publishes the job if the cluster does
   * not know it.
   */
  isLedHere(job: JobRecord): Promise<boolean>;
  /** Notes in the published entry of `job` that another job, with the id `by`, retries it. */
  markRetried(job: string, by: string): Promise<void>;
  /** True if the cluster knows that the job has ended, so that no node runs it again. Only for jobs that this node has led. */
  hasPublishedEnd(job: string): Promise<boolean>;
  /** True if this node works on a task of the job. The job may be led by another node. */
  isWorkedOn(job: string): boolean;
  /** Must be called when this process no longer runs the job. */
  release(job: string): void;
  /** Does the work of a job together with other nodes, and returns the results of the job. */
  work(process: Process, inputs: unknown, context: FullJobContext): Promise<unknown>;
}

/** Idempotency keys (the header `Idempotency-Key`): a request that is sent twice starts one job. */
export interface IdempotencyKey {
  /** Chosen by the client. */
  key: string;
  /** Digest of everything that the request asks for. */
  digest: string;
}

export const KEY_TTL_MS = 24 * 3_600_000;
export const MAX_KEYS = 10_000;

export const keyHash = (key: string) => createHash('sha256').update(key).digest('hex');

/** Invariant: `known` has the requests that are on disk or being written, the oldest first, at most MAX_KEYS. */
export class IdempotencyKeys {
  private constructor(
    private readonly catalogue: Catalogue,
    private readonly known: Map<string, RequestRecord>,
  ) {}

  static async open(catalogue: Catalogue): Promise<IdempotencyKeys> {
    const records: [string, RequestRecord][] = [];
    for await (const { key, record } of catalogue.requests.scan()) if (record) records.push([key, record]);
    records.sort(([, a], [, b]) => a.since - b.since);
    return new IdempotencyKeys(catalogue, new Map(records));
  }

  /** The job that this request has started. Throws TW_JOB_KEY_REUSED if another request has used the key. */
  find({ key, digest }: IdempotencyKey, now = Date.now()): string | undefined {
    const record = this.known.get(keyHash(key));
    if (!record || record.since <= now - KEY_TTL_MS) return undefined;
    if (record.digest !== digest) throw idempotencyKeyReused(record.job);
    return record.job;
  }

  /** Changes that store the key together with its job, and the changes of `expire`. */
  add({ key, digest }: IdempotencyKey, job: string, now = Date.now()): CatalogueChange[] {
    const name = keyHash(key);
    const record = { job, digest, since: now };
    this.known.delete(name);
    this.known.set(name, record);
    return [this.catalogue.requests.set(name, record), ...this.expire(now)];
  }

  /** Undoes `add` for a job that could not be written, so that the request can be repeated. */
  remove({ key }: IdempotencyKey, job: string): void {
    const name = keyHash(key);
    if (this.known.get(name)?.job === job) this.known.delete(name);
  }

  /** Forgets keys that are too old or too many; returns the changes that remove them from disk. */
  expire(now = Date.now()): CatalogueChange[] {
    const changes: CatalogueChange[] = [];
    for (const [name, { since }] of this.known) {
      if (since > now - KEY_TTL_MS && this.known.size <= MAX_KEYS) break;
      this.known.delete(name);
      changes.push(this.catalogue.requests.delete(name));
    }
    return changes;
  }
}

export const GC_INTERVAL_MS = 3_600_000;

interface JobGcContext {
  storage: Storage;
  requests: IdempotencyKeys;
  /** True if this node is working on a job, possibly for another node. */
  isWorkedOn(job: string): boolean;
  /** False if the end of a job is not published. Its record must stay, because it shows that the job must not run again. */
  hasPublishedEnd(job: string): Promise<boolean>;
  /** Stops the collection early; the next one does the rest. */
  isStopping(): boolean;
}

/** Removes the records, logs, results and scratch files of jobs that are old enough at the time `now`, ms since 1970. */
export async function collectGarbage(context: JobGcContext, now: number): Promise<void> {
  const { storage, requests, isWorkedOn, hasPublishedEnd, isStopping } = context;
  const { catalogue } = storage;
  const before = now - REMOVAL_DELAY_MS - RETENTION_MS;
  // Ids sort by time: later jobs cannot have ended early enough, so few records are read.
  for await (const { key, record } of catalogue.jobs.scan({ before: firstVersionAt(before) })) {
    if (isStopping()) return;
    if (record && isRemovable(record, now) && (await hasPublishedEnd(key))) await deleteJob(catalogue, key);
  }
  await catalogue.dropUnusedSchemas(isStopping);
  const changes = requests.expire(now);
  if (changes.length > 0) await catalogue.write(changes);
  const isKept = async (job: string) => isWorkedOn(job) || catalogue.jobs.has(job);
  await storage.results.expire(before, isKept);
  await storage.scratch.expire(before, isKept);
}
