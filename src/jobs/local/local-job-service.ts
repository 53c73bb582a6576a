/** Runs jobs, a few at a time, and keeps their records and logs. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { PeriodicTask, Semaphore } from '../../async/index.js';
import { messageOf } from '../../errors.js';
import { type JobRecord, newVersion, type Storage } from '../../storage/index.js';
import {
  jobDismissed,
  jobInterrupted,
  jobLimit,
  jobNotEnded,
  jobNotFound,
  jobsClosed,
  jobTakenOver,
  nothingFailed,
  uploadDeleted,
} from '../errors.js';
import { type IdempotencyKey, IdempotencyKeys } from './idempotency-keys.js';
import { JobExecution, type JobListener } from './job-execution.js';
import { collectGarbage, GC_INTERVAL_MS } from './job-gc.js';
import { JobLog, type LogLine, readLog } from './job-log.js';
import { deleteJob, hasEnded, listJobs, orphanedJobs, QUEUED_STATE, stateLine } from './job-records.js';
import type { JobRegistry } from './job-registry.js';
import type { JobFile, JobService } from './job-service.js';
import type { Process } from './process.js';
import { hasExpired } from './retention.js';

const MAX_QUEUED_JOBS = 100;

const warn = (error: unknown) => process.emitWarning(`jobs: ${messageOf(error)}`);

export interface LocalJobServiceOptions {
  /** Jobs that run at once. */
  concurrency?: number;
  /**
   * Whether jobs belong to the folder and not to this process: those that a process has left are run, and those that this
   * one leaves are taken up by the next. Without it they wait for a process that does so.
   */
  resume?: boolean;
  /** Where the node is one of many. */
  registry?: JobRegistry;
  /** Called with each error of background work. The work is tried again. */
  onFailure?: (error: unknown) => void;
}

export interface StartOptions {
  /** What the process gets, where it must know more than `inputs`, which are what was asked for. */
  given?: unknown;
  /** How the results answer. */
  resultOptions?: JobRecord['resultOptions'];
  /** Names of scratch folders with files that were sent for the job: removed when it has ended, and not before. They have been synced. */
  uploads?: string[];
  /** A job that has ended, and whose failed inputs this one does again. */
  retryOf?: JobRecord;
  request?: IdempotencyKey;
}

/**
 * Invariants: nobody is told a state of a job (by `start`, `get`, `wait` or a listener) before it is on disk, together with
 * the line of its log that tells of it; the records of a job are written in the order of its states, the last one is
 * successful, failed or dismissed, and none follows it. `live` and `ends` hold the jobs that have not ended; at most
 * `concurrency` of them run and MAX_QUEUED_JOBS wait.
 */
export class LocalJobService implements JobService {
  private readonly live = new Map<string, JobExecution>();
  /** By job: its record when it has ended. Rejects where the end could not be written. */
  private readonly ends = new Map<string, Promise<JobRecord>>();
  /** Ends that could not be written, so that who asks is not told that the job still runs. */
  private readonly unwrittenEnds = new Map<string, JobRecord>();
  private readonly semaphore: Semaphore;
  private readonly catalogue: Storage['catalogue'];
  private readonly gcTask: PeriodicTask;
  private closed = false;
  private stopped = false;

  private constructor(
    private readonly storage: Storage,
    private readonly requests: IdempotencyKeys,
    private readonly resume: boolean,
    concurrency: number,
    private readonly board: JobRegistry | undefined,
    onFailure: (error: unknown) => void,
  ) {
    this.semaphore = new Semaphore(concurrency);
    this.catalogue = storage.catalogue;
    // The first time at once: a command ends long before the interval is over.
    this.gcTask = new PeriodicTask(() => this.collectGarbage(), GC_INTERVAL_MS, onFailure, 0);
  }

  /** `processes` are all that there are: jobs of others cannot be taken up. */
  static async open(
    storage: Storage,
    processes: Process[],
    { concurrency = 1, resume = false, registry, onFailure = warn }: LocalJobServiceOptions = {},
  ): Promise<LocalJobService> {
    const left = await orphanedJobs(storage, processes, registry);
    const requests = await IdempotencyKeys.open(storage.catalogue);
    const jobs = new LocalJobService(storage, requests, resume, concurrency, registry, onFailure);
    const slots = resume ? jobs.semaphore : new Semaphore(0);
    for (const { record, process, log } of left)
      jobs.admit(new JobExecution(storage, process, log, record, Promise.resolve(), registry), slots);
    return jobs;
  }

  /** After `close`: nothing happens to any job. */
  get hasStopped(): boolean {
    return this.stopped;
  }

  /**
   * Accepts a job; its record is on disk when this resolves, and it runs when its turn comes. The inputs have been checked
   * against the process's schema, and by its `check`. What the process returns becomes `results` and must be JSON; what it throws becomes
   * `error`, with results where it is FailedWithResults. Throws TW_JOB_LIMIT, TW_JOB_CLOSED.
   */
  async start(process: Process, inputs: unknown, options: StartOptions = {}): Promise<JobRecord> {
    return (await this.startUnlessRepeated(process, inputs, options)).job;
  }

  /** As `start`; or tells which job another node has started for the same request. */
  async startUnlessRepeated(
    process: Process,
    inputs: unknown,
    options: StartOptions,
  ): Promise<{ job: JobRecord; repeated: boolean }> {
    const { given, resultOptions, uploads, retryOf, request } = options;
    if (this.closed) throw jobsClosed(process.id);
    const waiting = [...this.live.values()].filter((job) => job.isQueued);
    if (waiting.length >= MAX_QUEUED_JOBS) throw jobLimit(MAX_QUEUED_JOBS);
    const now = Date.now();
    const record: JobRecord = {
      ...QUEUED_STATE,
      id: newVersion(),
      process: process.id,
      created: now,
      updated: now,
      inputs,
      lines: 1,
      ...(this.resume && process.resumable && { resumable: true }),
      ...(given !== undefined && { given }),
      ...(resultOptions && { resultOptions }),
      ...(uploads && { uploads }),
      ...(retryOf && { retryOf: retryOf.id }),
    };
    const { jobs } = this.catalogue;
    const known = await this.board?.accept(record, request);
    if (known !== undefined) return { job: { ...record, id: known }, repeated: true };
    const log = JobLog.empty(this.catalogue, record.id);
    log.add(stateLine(record));
    const changes = [jobs.set(record.id, record), ...log.changes()];
    if (retryOf && (await jobs.has(retryOf.id)))
      changes.push(jobs.set(retryOf.id, { ...retryOf, retriedBy: record.id }));
    if (request && !this.board) changes.push(...this.requests.add(request, record.id));
    const accepted = this.catalogue.write(changes).catch(async (error) => {
      if (request) this.requests.remove(request, record.id);
      await this.board?.withdraw(record.id, error, request);
      throw error;
    });
    this.admit(new JobExecution(this.storage, process, log, record, accepted, this.board));
    await accepted;
    if (retryOf) await this.board?.markRetried(retryOf.id, record.id);
    return { job: record, repeated: false };
  }

  /**
   * Goes on with a job that another node had; `lines` are the lines that its log had there. It waits once more.
   */
  async takeOver(process: Process | undefined, job: JobRecord, remark?: string): Promise<void> {
    const { jobs } = this.catalogue;
    const log = JobLog.after(this.catalogue, job.id, job.lines ?? 0);
    log.add(stateLine(job, remark));
    const record = { ...job, lines: log.last };
    const written = this.catalogue.write([jobs.set(job.id, record), ...log.changes()]);
    if (process && !hasEnded(job))
      this.admit(new JobExecution(this.storage, process, log, record, written, this.board));
    await written;
    if (hasEnded(job)) await this.board?.publish(record, true);
  }

  /** Whether a job has not ended and is run by this process. */
  isLive(id: string): boolean {
    return this.live.has(id);
  }

  /** The record of a job that is this node's, even if it has expired. */
  async find(id: string): Promise<JobRecord | undefined> {
    return this.live.get(id)?.published ?? this.unwrittenEnds.get(id) ?? (await this.catalogue.jobs.get(id));
  }

  /** Jobs of a node that is alone have no other home. */
  async leaderOf(_id: string, _alsoEnded?: boolean): Promise<undefined> {
    return undefined;
  }

  /** A file that a job answered with; undefined where there is none of this name. Throws TW_STORAGE_BAD_NAME. */
  async file(id: string, name: string): Promise<JobFile | undefined> {
    const path = this.storage.results.path(id, name);
    const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return undefined;
    });
    return info && { bytes: info.size, open: () => createReadStream(path) };
  }

  /** Stops to work on a job that is another node's by now. */
  abandon(id: string): void {
    this.live.get(id)?.abort.abort(jobTakenOver(id));
  }

  /**
   * As `start`, but a request that was made before gives the job that it has started then. Throws TW_JOB_KEY_REUSED.
   */
  async startIdempotent(
    process: Process,
    inputs: unknown,
    options: StartOptions & { request: IdempotencyKey },
  ): Promise<{ job: JobRecord; repeated: boolean }> {
    const known = this.requests.find(options.request);
    if (known === undefined) return this.startUnlessRepeated(process, inputs, options);
    await this.live.get(known)?.written;
    return { job: await this.get(known), repeated: true };
  }

  /**
   * Starts a job for the failed inputs of one that has ended; `terms` may change what the process is given. Throws TW_JOB_NOT_FOUND, TW_JOB_NOT_ENDED,
   * TW_JOB_NOTHING_FAILED, TW_JOB_UPLOAD_GONE, and what `start` throws.
   */
  async retry(
    id: string,
    process: Process,
    terms: (given: unknown) => unknown = (given) => given,
  ): Promise<JobRecord> {
    return this.retryRecord(await this.get(id), process, terms);
  }

  /** The same of a job whose record may be another node's. */
  async retryRecord(
    job: JobRecord,
    process: Process,
    terms: (given: unknown) => unknown = (given) => given,
  ): Promise<JobRecord> {
    const { id } = job;
    if (!hasEnded(job)) throw jobNotEnded(id, job.status);
    const again = async (inputs: unknown) =>
      job.status === 'successful' ? process.retryInputs?.(inputs, job.results) : inputs;
    const inputs = await again(job.inputs);
    if (inputs === null || inputs === undefined) throw nothingFailed(id);
    if (job.uploads) throw uploadDeleted(id);
    const given = terms(job.given === undefined ? inputs : await again(job.given));
    const { resultOptions } = job;
    return this.start(process, inputs, {
      given: given === inputs ? undefined : given,
      resultOptions,
      retryOf: job,
    });
  }

  /** Throws TW_JOB_NOT_FOUND, also for a job that has expired. */
  async get(id: string): Promise<JobRecord> {
    const job = await this.find(id);
    if (!job || hasExpired(job)) throw jobNotFound(id);
    return job;
  }

  /**
   * Removes what has expired by `now` (ms since 1970): jobs with their logs and results, idempotency keys, and files that work could have
   * gone on from.
   */
  collectGarbage(now = Date.now()): Promise<void> {
    const { storage, requests, live, board } = this;
    const isWorkedOn = (job: string) => live.has(job) || (board?.isWorkedOn(job) ?? false);
    const hasPublishedEnd = async (job: string) => (await board?.hasPublishedEnd(job)) ?? true;
    const isStopping = () => this.closed;
    return collectGarbage({ storage, requests, isWorkedOn, hasPublishedEnd, isStopping }, now);
  }

  /** Newest first; the next page begins before the last id of this one. */
  list(limit = 100, before?: string, wanted: (job: JobRecord) => boolean = () => true): Promise<JobRecord[]> {
    return listJobs(this.catalogue, limit, before, wanted);
  }

  /** Lines of a job's log that are on disk, from after the line `after` on, even if the job expires meanwhile. Throws TW_JOB_NOT_FOUND. */
  async log(id: string, { after = 0, limit = 1000 } = {}): Promise<LogLine[]> {
    if (!(await this.find(id))) throw jobNotFound(id);
    return readLog(this.catalogue, id, after, limit);
  }

  /** The record when the job has ended, or when the node stops and leaves it to the next. Throws TW_JOB_NOT_FOUND. */
  async wait(id: string): Promise<JobRecord> {
    return this.ends.get(id) ?? this.get(id);
  }

  /**
   * Calls `listener` with the job as it is now, after each change, and when the node stops, until it has ended or the
   * returned function is called. Throws TW_JOB_NOT_FOUND.
   */
  async subscribe(id: string, listener: JobListener): Promise<() => void> {
    const job = this.live.get(id);
    if (job) job.listeners.add(listener);
    listener(job ? job.published : await this.get(id));
    return () => job?.listeners.delete(listener);
  }

  /**
   * Asks the job to stop, and resolves with its record when it has: dismissed, or successful where it was done before it
   * saw the request. A job that has ended stays as it is. Throws TW_JOB_NOT_FOUND.
   */
  cancel(id: string): Promise<JobRecord> {
    this.live.get(id)?.abort.abort(jobDismissed(id));
    return this.wait(id);
  }

  /** Starts no further job, and stops all that have not ended: they wait for the next process, or have failed with TW_JOB_INTERRUPTED. */
  async close(): Promise<void> {
    this.closed = true;
    await this.gcTask.close();
    const live = [...this.live.values()];
    for (const job of live) job.abort.abort(jobInterrupted(job.id));
    const ends = await Promise.allSettled(this.ends.values());
    this.stopped = true;
    for (const job of live) job.notify();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  private admit(job: JobExecution, slots = this.semaphore): void {
    // It was accepted while the node began to stop.
    if (this.closed) job.abort.abort(jobInterrupted(job.id));
    this.live.set(job.id, job);
    const end = job.written.then(() => this.run(job, slots)).finally(() => this.removeLive(job.id));
    // An end that nobody waits for must not end the process; who waits sees the error.
    end.catch(() => undefined);
    this.ends.set(job.id, end);
  }

  private async run(job: JobExecution, slots: Semaphore): Promise<JobRecord> {
    const { signal } = job.abort;
    try {
      await slots.run(() => job.run(), signal);
    } catch (error) {
      const isAbort = error === signal.reason || (error instanceof Error && error.name === 'AbortError');
      const reason = signal.aborted && isAbort ? signal.reason : error;
      if (jobTakenOver.is(signal.reason) || jobTakenOver.is(error)) {
        await deleteJob(this.catalogue, job.id);
        throw jobTakenOver(job.id);
      }
      // Where the node stops, what else went wrong may come from that; if not, the next process meets it too.
      if (jobInterrupted.is(signal.reason) && job.isResumable) await job.suspend();
      else await this.end(job, reason);
    }
    if (hasEnded(job.published)) await job.removeScratch();
    return job.published;
  }

  private async end(job: JobExecution, reason: unknown): Promise<void> {
    try {
      await job.end(reason);
    } catch (failure) {
      if (jobTakenOver.is(failure)) return deleteJob(this.catalogue, job.id);
      this.unwrittenEnds.set(job.id, job.published);
      throw failure;
    }
  }

  private removeLive(id: string): void {
    this.live.delete(id);
    this.ends.delete(id);
    this.board?.release(id);
  }
}
