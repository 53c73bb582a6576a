/** Runs jobs, a few at the same time, and keeps their records and logs. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { PeriodicTask, Semaphore } from '../async/index.js';
import { messageOf } from '../errors.js';
import { type JobRecord, newVersion, type Storage } from '../storage/index.js';
import { jobDismissed, jobInterrupted, jobLimit, jobNotFound, jobsClosed, jobTakenOver } from './errors.js';
import { JobExecution, type JobListener, type LineListener } from './execution.js';
import { JobLog, type LogLine, readLog } from './log.js';
import type { Process } from './process.js';
import {
  collectGarbage,
  deleteJob,
  GC_INTERVAL_MS,
  hasEnded,
  hasExpired,
  IdempotencyKeys,
  type JobRegistry,
  listJobs,
  orphanedJobs,
  QUEUED_STATE,
  stateLine,
} from './records.js';
import type { JobFile, JobService, StartedJob, StartOptions } from './service.js';

const MAX_QUEUED_JOBS = 100;
/** The rest is for other clients. */
const MAX_QUEUED_JOBS_OF_CLIENT = 80;

const warn = (error: unknown) => process.emitWarning(`jobs: ${messageOf(error)}`);

export interface LocalJobServiceOptions {
  /** Maximum number of jobs that run at the same time. */
  concurrency?: number;
  /**
   * True if jobs belong to the folder and not to this process: this process runs the jobs that an earlier one has left, and leaves its
   * own to the next. Without it, they wait for a process with this option.
   */
  resume?: boolean;
  /** Set on a cluster node. */
  registry?: JobRegistry;
  /** Called with each error of background work, which is retried. */
  onFailure?: (error: unknown) => void;
  /** Called with each line of the logs of the jobs that this service runs. */
  onLine?: LineListener;
}

/**
 * Invariants: no state of a job is reported (by `start`, `get`, `wait` or a listener) before it is on disk, together with its log line. The
 * records of a job are written in the order of its states; the final one is successful, failed or dismissed, and none follows
 * it. `live` and `ends` contain the jobs that have not ended; at most `concurrency` of them run and at most MAX_QUEUED_JOBS wait.
 */
export class LocalJobService implements JobService {
  private readonly live = new Map<string, JobExecution>();
  /** The address of the client that has started a job. */
  private readonly clients = new WeakMap<JobExecution, string>();
  /** The final record by job. Rejects if the end could not be written. */
  private readonly ends = new Map<string, Promise<JobRecord>>();
  /** Final records that could not be written, so that readers do not see these jobs as running. */
  private readonly unwrittenEnds = new Map<string, JobRecord>();
  private readonly registry: JobRegistry | undefined;
  private readonly semaphore: Semaphore;
  private readonly catalogue: Storage['catalogue'];
  private readonly gcTask: PeriodicTask;
  private closed = false;
  private stopped = false;

  private constructor(
    private readonly storage: Storage,
    private readonly requests: IdempotencyKeys,
    private readonly options: LocalJobServiceOptions,
  ) {
    const { concurrency = 1, registry, onFailure = warn } = options;
    this.registry = registry;
    this.semaphore = new Semaphore(concurrency);
    this.catalogue = storage.catalogue;
    // The first collection starts immediately, because a command ends long before the interval is over.
    this.gcTask = new PeriodicTask(() => this.collectGarbage(), GC_INTERVAL_MS, onFailure, 0);
  }

  /** `processes` must be complete: jobs of unknown processes cannot be resumed. */
  static async open(
    storage: Storage,
    processes: Process[],
    options: LocalJobServiceOptions = {},
  ): Promise<LocalJobService> {
    const orphaned = await orphanedJobs(storage, processes, options.registry);
    const requests = await IdempotencyKeys.open(storage.catalogue);
    const service = new LocalJobService(storage, requests, options);
    const semaphore = options.resume ? service.semaphore : new Semaphore(0);
    for (const { record, process, log } of orphaned)
      service.admit(service.execution(process, log, record, Promise.resolve()), semaphore);
    return service;
  }

  get hasStopped(): boolean {
    return this.stopped;
  }

  async start(process: Process, inputs: unknown, options?: StartOptions): Promise<JobRecord> {
    return (await this.startIdempotent(process, inputs, options)).job;
  }

  async startIdempotent(process: Process, inputs: unknown, options: StartOptions = {}): Promise<StartedJob> {
    const { given, resultOptions, uploads, retryOf, request, client } = options;
    // In a cluster, all nodes know the keys, and the registry finds the job.
    const earlier = request && !this.registry ? this.requests.find(request) : undefined;
    if (earlier !== undefined) {
      await this.live.get(earlier)?.written;
      return { job: await this.get(earlier), repeated: true };
    }
    if (this.closed) throw jobsClosed(process.id);
    this.requireRoom(client);
    const now = Date.now();
    const record: JobRecord = {
      ...QUEUED_STATE,
      id: newVersion(),
      process: process.id,
      created: now,
      updated: now,
      inputs,
      lines: 1,
      ...(this.options.resume && process.resumable && { resumable: true }),
      ...(given !== undefined && { given }),
      ...(resultOptions && { resultOptions }),
      ...(uploads && { uploads }),
      ...(retryOf && { retryOf: retryOf.id }),
    };
    const { jobs } = this.catalogue;
    // Without a registry, nothing may be awaited between `find` and `add` of the key, so that a concurrent request finds it.
    const known = this.registry && (await this.registry.accept(record, request));
    if (known !== undefined) return { job: { ...record, id: known }, repeated: true };
    const log = JobLog.after(this.catalogue, record.id, 0);
    const accepting = stateLine(record);
    log.add(accepting);
    const changes = [...jobs.set(record), ...log.changes()];
    if (retryOf && (await jobs.has(retryOf.id)))
      changes.push(...jobs.set({ ...retryOf, retriedBy: record.id }, retryOf));
    if (request && !this.registry) changes.push(...this.requests.add(request, record.id));
    const accepted = this.catalogue.write(changes).catch(async (error) => {
      if (request) this.requests.remove(request, record.id);
      await this.registry?.withdraw(record.id, error, request);
      throw error;
    });
    const execution = this.execution(process, log, record, accepted);
    if (client !== undefined) this.clients.set(execution, client);
    this.admit(execution);
    await accepted;
    this.options.onLine?.(record, accepting);
    if (retryOf) await this.registry?.markRetried(retryOf.id, record.id);
    return { job: record, repeated: false };
  }

  /** Throws TW_JOB_LIMIT if too many jobs wait, in all or of this client. */
  private requireRoom(client: string | undefined): void {
    const waiting = [...this.live.values()].filter((job) => job.isQueued);
    if (waiting.length >= MAX_QUEUED_JOBS) throw jobLimit(MAX_QUEUED_JOBS);
    const ofClient = waiting.filter((job) => client !== undefined && this.clients.get(job) === client);
    if (ofClient.length >= MAX_QUEUED_JOBS_OF_CLIENT) throw jobLimit(MAX_QUEUED_JOBS_OF_CLIENT);
  }

  /** Takes over a job of another node and queues it again. The log on that node has `job.lines` lines. */
  async takeOver(process: Process | undefined, job: JobRecord, remark?: string): Promise<void> {
    const { jobs } = this.catalogue;
    const log = JobLog.after(this.catalogue, job.id, job.lines ?? 0);
    log.add(stateLine(job, remark));
    const record = { ...job, lines: log.last };
    const written = this.catalogue.write([...jobs.set(record), ...log.changes()]);
    if (process && !hasEnded(job)) this.admit(this.execution(process, log, record, written));
    await written;
    if (hasEnded(job)) await this.registry?.publish(record, true);
  }

  /** The jobs that this process leads and that have not ended. */
  get active(): JobRecord[] {
    return [...this.live.values()].map(({ published }) => published);
  }

  /** True if this process runs a job that has not ended. */
  isLive(id: string): boolean {
    return this.live.has(id);
  }

  /** True if the record of this process is the newest one: of a job that it runs, or whose end it could not write. */
  isLed(id: string): boolean {
    return this.live.has(id) || this.unwrittenEnds.has(id);
  }

  /** The record of a job of this node, even if it has expired. */
  async find(id: string): Promise<JobRecord | undefined> {
    return this.live.get(id)?.published ?? this.unwrittenEnds.get(id) ?? (await this.catalogue.jobs.get(id));
  }

  /** On a single node, no other node leads a job. */
  async leaderOf(_id: string, _alsoEnded?: boolean): Promise<undefined> {
    return undefined;
  }

  async file(id: string, name: string): Promise<JobFile | undefined> {
    const path = this.storage.results.path(id, name);
    const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return undefined;
    });
    return info && { bytes: info.size, open: () => createReadStream(path) };
  }

  /** Stops the work on a job that another node leads now. */
  abandon(id: string): void {
    this.live.get(id)?.abort.abort(jobTakenOver(id));
  }

  async get(id: string): Promise<JobRecord> {
    const job = await this.find(id);
    if (!job || hasExpired(job)) throw jobNotFound(id);
    return job;
  }

  status(id: string): Promise<JobRecord> {
    return this.get(id);
  }

  /**
   * Removes everything that has expired by `now` (ms since 1970): jobs with their logs and results, idempotency keys, and files for
   * resuming.
   */
  collectGarbage(now = Date.now()): Promise<void> {
    const { storage, requests, live, registry } = this;
    const isWorkedOn = (job: string) => live.has(job) || (registry?.isWorkedOn(job) ?? false);
    const hasPublishedEnd = async (job: string) => (await registry?.hasPublishedEnd(job)) ?? true;
    const isStopping = () => this.closed;
    return collectGarbage({ storage, requests, isWorkedOn, hasPublishedEnd, isStopping }, now);
  }

  list(limit = 100, before?: string, wanted: (job: JobRecord) => boolean = () => true): Promise<JobRecord[]> {
    return listJobs(this.catalogue, limit, before, wanted);
  }

  async log(id: string, { after = 0, limit = 1000 } = {}): Promise<LogLine[]> {
    if (!(await this.find(id))) throw jobNotFound(id);
    return readLog(this.catalogue, id, after, limit);
  }

  /** Resolves to the record when the job has ended, or when the node stops and leaves it to the next process. Throws TW_JOB_NOT_FOUND. */
  async wait(id: string): Promise<JobRecord> {
    return this.ends.get(id) ?? this.get(id);
  }

  async subscribe(id: string, listener: JobListener): Promise<() => void> {
    const job = this.live.get(id);
    if (job) job.listeners.add(listener);
    listener(job ? job.published : await this.get(id));
    return () => job?.listeners.delete(listener);
  }

  cancel(id: string): Promise<JobRecord> {
    this.live.get(id)?.abort.abort(jobDismissed(id));
    return this.wait(id);
  }

  /** Starts no further job and stops all others: resumable jobs wait for the next process, the rest fail with TW_JOB_INTERRUPTED. */
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

  private execution(process: Process, log: JobLog, record: JobRecord, writes: Promise<void>): JobExecution {
    return new JobExecution(this.storage, process, log, record, writes, this.registry, this.options.onLine);
  }

  private admit(job: JobExecution, semaphore = this.semaphore): void {
    // The job was accepted while the node began to stop.
    if (this.closed) job.abort.abort(jobInterrupted(job.id));
    this.live.set(job.id, job);
    const end = job.written.then(() => this.run(job, semaphore)).finally(() => this.removeLive(job.id));
    // Without this handler, an end that nobody waits for would end the process; callers of `wait` still see the error.
    end.catch(() => undefined);
    this.ends.set(job.id, end);
  }

  private async run(job: JobExecution, semaphore: Semaphore): Promise<JobRecord> {
    const { signal } = job.abort;
    try {
      await semaphore.run(() => job.run(), signal);
    } catch (error) {
      const isAbort = error === signal.reason || (error instanceof Error && error.name === 'AbortError');
      const reason = signal.aborted && isAbort ? signal.reason : error;
      if (jobTakenOver.is(signal.reason) || jobTakenOver.is(error)) {
        await deleteJob(this.catalogue, job.id);
        throw jobTakenOver(job.id);
      }
      // If the node is stopping, other errors may be consequences of that; if they are not, the next process meets them again.
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
    this.registry?.release(id);
  }
}
