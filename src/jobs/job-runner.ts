/** Runs jobs, a few at a time, and keeps their records. */
import type { TilewrightError } from '../errors.js';
import { type Catalogue, type JobRecord, newVersion } from '../storage/index.js';
import {
  FailedWithResults,
  jobDismissed,
  jobInterrupted,
  jobLimit,
  jobNotFound,
  jobsClosed,
} from './errors.js';
import { hasEnded, JobStore, jobError } from './job-store.js';
import { Slots } from './slots.js';

const WAITING_LIMIT = 100;
/** Progress is written at most this often, ms. */
const PROGRESS_INTERVAL = 1000;

export type JobProgress = JobRecord['tiles'];
export type JobListener = (job: JobRecord) => void;

/** What the work of a job sees of it. */
export interface JobContext {
  readonly id: string;
  /** Aborted when the job is cancelled or the node stops; the work should then throw `signal.reason` soon. */
  readonly signal: AbortSignal;
  /**
   * Counts of tiles so far, and the share of the work that is done, 0 to 1. Nothing goes down: lower numbers are passed over.
   */
  progress(now: Partial<JobProgress> & { share?: number }): void;
  /** One line for people: what the job is doing. */
  message(text: string): void;
}

export type JobWork = (context: JobContext) => Promise<unknown>;

interface LiveJob {
  /** The last record that is on disk. */
  told: JobRecord;
  /** The record to be written next. */
  next: JobRecord;
  readonly abort: AbortController;
  readonly listeners: Set<JobListener>;
  /** All writes of the record so far, one after another. */
  writes: Promise<void>;
  /** Set while progress waits to be written. */
  timer: NodeJS.Timeout | undefined;
}

/**
 * Invariants: nobody is told a state of a job (by `start`, `get`, `wait` or a listener) before it is on disk; the records
 * of a job are written in the order of its states, the last one is successful, failed or dismissed, and none follows it.
 * `live` and `ends` hold the jobs that have not ended; at most `concurrency` of them run and WAITING_LIMIT wait.
 */
export class Jobs {
  private readonly live = new Map<string, LiveJob>();
  /** By job: its record when it has ended. Rejects where the end could not be written. */
  private readonly ends = new Map<string, Promise<JobRecord>>();
  /** Ends that could not be written, so that who asks is not told that the job still runs. */
  private readonly unwritten = new Map<string, JobRecord>();
  private readonly slots: Slots;
  private closed = false;

  private constructor(
    private readonly store: JobStore,
    concurrency: number,
  ) {
    this.slots = new Slots(concurrency);
  }

  /** Jobs that a dead process has left waiting or running are marked failed with TW_JOB_INTERRUPTED. */
  static async open(catalogue: Catalogue, { concurrency = 1 } = {}): Promise<Jobs> {
    const store = new JobStore(catalogue);
    await store.failInterrupted();
    return new Jobs(store, concurrency);
  }

  /**
   * Accepts a job; its record is on disk when this resolves, and `work` runs when its turn comes. What `work` returns
   * becomes `results` and must be JSON; what it throws becomes `error`, with results where it is FailedWithResults. Throws
   * TW_JOB_LIMIT, TW_JOB_CLOSED.
   */
  async start(process: string, inputs: unknown, work: JobWork): Promise<JobRecord> {
    if (this.closed) throw jobsClosed(process);
    const waiting = [...this.live.values()].filter((job) => job.next.status === 'accepted');
    if (waiting.length >= WAITING_LIMIT) throw jobLimit(WAITING_LIMIT);
    const now = Date.now();
    const record: JobRecord = {
      id: newVersion(),
      process,
      status: 'accepted',
      created: now,
      updated: now,
      tiles: { total: 0, done: 0, failed: 0, skipped: 0 },
      message: '',
      inputs,
    };
    const accepted = this.store.put(record);
    const job: LiveJob = {
      told: record,
      next: record,
      abort: new AbortController(),
      listeners: new Set(),
      writes: accepted,
      timer: undefined,
    };
    this.live.set(record.id, job);
    const end = accepted.then(() => this.run(job, work)).finally(() => this.forget(record.id));
    // An end that nobody waits for must not end the process; who waits sees the error.
    end.catch(() => undefined);
    this.ends.set(record.id, end);
    await accepted;
    return record;
  }

  /** Throws TW_JOB_NOT_FOUND. */
  async get(id: string): Promise<JobRecord> {
    const job = this.live.get(id)?.told ?? this.unwritten.get(id) ?? (await this.store.get(id));
    if (!job) throw jobNotFound(id);
    return job;
  }

  /** Newest first; the next page begins before the last id of this one. */
  list(limit = 100, before?: string): Promise<JobRecord[]> {
    return this.store.list(limit, before);
  }

  /** The record when the job has ended. Throws TW_JOB_NOT_FOUND. */
  async wait(id: string): Promise<JobRecord> {
    return this.ends.get(id) ?? this.get(id);
  }

  /**
   * Calls `listener` with the job as it is now and after each change, until it has ended or the returned function is
   * called. Throws TW_JOB_NOT_FOUND.
   */
  async subscribe(id: string, listener: JobListener): Promise<() => void> {
    const job = this.live.get(id);
    if (job) job.listeners.add(listener);
    listener(job ? job.told : await this.get(id));
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

  /** Starts no further job, and stops all that have not ended: failed with TW_JOB_INTERRUPTED. */
  async close(): Promise<void> {
    this.closed = true;
    for (const [id, job] of this.live) job.abort.abort(jobInterrupted(id));
    const ends = await Promise.allSettled(this.ends.values());
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  private async run(job: LiveJob, work: JobWork): Promise<JobRecord> {
    try {
      const results = await this.slots.run(job.abort.signal, async () => {
        await this.write(job, { status: 'running', started: Date.now() });
        return work(this.contextOf(job));
      });
      await this.write(job, { status: 'successful', finished: Date.now(), results });
    } catch (thrown) {
      const { error, results } =
        thrown instanceof FailedWithResults ? thrown : { error: thrown, results: undefined };
      const end = outcome(error, job.abort.signal);
      // Results that could not be written are what failed.
      await this.write(job, { ...end, finished: Date.now(), results }).catch((failure) => {
        this.unwritten.set(job.next.id, job.next);
        throw failure;
      });
    }
    return job.told;
  }

  private contextOf(job: LiveJob): JobContext {
    return {
      id: job.next.id,
      signal: job.abort.signal,
      progress: ({ share, ...tiles }) => {
        const now = { ...job.next.tiles };
        for (const count of ['total', 'done', 'failed', 'skipped'] as const)
          now[count] = Math.max(now[count], tiles[count] ?? 0);
        this.writeLater(job, {
          tiles: now,
          ...(share !== undefined && { share: Math.max(job.next.share ?? 0, share) }),
        });
      },
      message: (text) => this.writeLater(job, { message: text }),
    };
  }

  private writeLater(job: LiveJob, change: Partial<JobRecord>): void {
    if (hasEnded(job.next)) return;
    job.next = { ...job.next, ...change };
    // Where progress cannot be written the job goes on: the next record holds it too, and the end meets the error.
    job.timer ??= setTimeout(() => this.write(job, {}).catch(() => undefined), PROGRESS_INTERVAL);
  }

  /** Puts the changed record on disk, after those before it, and tells the listeners. */
  private write(job: LiveJob, change: Partial<JobRecord>): Promise<void> {
    clearTimeout(job.timer);
    job.timer = undefined;
    const record: JobRecord = { ...job.next, ...change, updated: Date.now() };
    job.next = record;
    // Who asked for the earlier write has its error; this one only waits for it to be over.
    const before = job.writes.catch(() => undefined);
    job.writes = before.then(async () => {
      await this.store.put(record);
      job.told = record;
      // A listener that throws is not the job's concern.
      for (const listener of job.listeners) queueMicrotask(() => listener(record));
    });
    return job.writes;
  }

  private forget(id: string): void {
    this.live.delete(id);
    this.ends.delete(id);
  }
}

/** How a job ends whose work threw `error`. */
function outcome(error: unknown, signal: AbortSignal): Pick<JobRecord, 'status' | 'error'> {
  const isAbort = error === signal.reason || (error instanceof Error && error.name === 'AbortError');
  if (!signal.aborted || !isAbort) return { status: 'failed', error: jobError(error) };
  const reason: TilewrightError = signal.reason;
  return { status: jobDismissed.is(reason) ? 'dismissed' : 'failed', error: jobError(reason) };
}
