/** The interface of a job service, the events of a job, and the retry of its failed inputs. */
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Peer } from '../dht/index.js';
import type { JobRecord, JobStatus } from '../storage/index.js';
import { jobNotEnded, nothingFailed, uploadDeleted } from './errors.js';
import type { JobListener } from './execution.js';
import type { LogLine } from './log.js';
import type { Process } from './process.js';
import { hasEnded, type IdempotencyKey } from './records.js';

/** A result file of a job. */
export interface JobFile {
  bytes: number;
  open(): Promise<Readable> | Readable;
}

export interface StartOptions {
  /** The inputs for the process, if it must get more than `inputs`, which are those of the request. */
  given?: unknown;
  /** How the results are returned. */
  resultOptions?: JobRecord['resultOptions'];
  /** Names of scratch folders with uploaded, synced files, which are removed when the job has ended. */
  uploads?: string[];
  /** The ended job whose failed inputs this one repeats. */
  retryOf?: JobRecord;
  request?: IdempotencyKey;
  /** The address of the client, if the number of its waiting jobs is limited. */
  client?: string;
}

/** `repeated` is true if an earlier, identical request has started the job. */
export interface StartedJob {
  job: JobRecord;
  repeated: boolean;
}

/** `stale`: the cluster cannot be asked, and may know more. */
export type ReportedJob = JobRecord & { stale?: true };

/** The jobs of this node or of all nodes of a cluster. */
export interface JobService {
  /** True after the service was closed: no job changes any more. */
  readonly hasStopped: boolean;
  /**
   * Accepts a job; its record is on disk when this resolves, and it runs when its turn comes. The caller has checked the inputs
   * against the schema of the process, and with its `check`. The return value of the process becomes `results` and must be JSON. Its error
   * becomes `error`, with results if it is FailedWithResults. Throws TW_JOB_LIMIT, TW_JOB_CLOSED.
   */
  start(process: Process, inputs: unknown, options?: StartOptions): Promise<JobRecord>;
  /** Like `start`, but a repeated `request` returns the job that it has started before. Throws TW_JOB_KEY_REUSED. */
  startIdempotent(process: Process, inputs: unknown, options?: StartOptions): Promise<StartedJob>;
  /** Throws TW_JOB_NOT_FOUND, even for a job that has expired. */
  get(id: string): Promise<JobRecord>;
  /** Like `get`. If the cluster cannot be asked, returns the last record that this process has seen; it has no results then. */
  status(id: string): Promise<ReportedJob>;
  /** Newest first; the next page starts before the last id of this page. */
  list(limit?: number, before?: string, wanted?: (job: JobRecord) => boolean): Promise<JobRecord[]>;
  /** The jobs that this process leads and that have not ended. */
  readonly active: JobRecord[];
  /** Stored log lines, starting after line `after`, even if the job expires in the meantime. Throws TW_JOB_NOT_FOUND. */
  log(id: string, page?: { after?: number; limit?: number }): Promise<LogLine[]>;
  /**
   * Calls `listener` with the current record, after each change, and when the node stops, until the job has ended or the
   * returned function is called. Throws TW_JOB_NOT_FOUND.
   */
  subscribe(id: string, listener: JobListener): Promise<() => void>;
  /**
   * Asks the job to stop, and resolves to its record when it has: dismissed, or successful if it finished before it
   * saw the request. An ended job stays as it is. Throws TW_JOB_NOT_FOUND.
   */
  cancel(id: string): Promise<JobRecord>;
  /** The node that must be asked for a job instead of this one. `alsoEnded` includes the last leader of an ended job. */
  leaderOf(id: string, alsoEnded?: boolean): Promise<Peer | undefined>;
  /** A result file of a job; undefined if it does not exist. Throws TW_STORAGE_BAD_NAME. */
  file(id: string, name: string): Promise<JobFile | undefined>;
}

/** `seq` is the number of a line of the job's log: a stream that starts after it misses nothing. */
export type JobEvent =
  /** `job` is set if this is the current state; earlier states, sent to a late reader, have none. */
  | { kind: 'state'; seq: number; status: JobStatus; time: number; job?: JobRecord }
  | { kind: 'log'; seq: number; line: LogLine }
  | { kind: 'progress'; job: JobRecord }
  /** Nothing has happened for `idleMs`. */
  | { kind: 'idle' };

export interface EventOptions {
  /** Start after this line of the log. Default: start with the current state. */
  after?: number | undefined;
  /** Ends the stream. */
  signal: AbortSignal;
  /** Silence after which `idle` is sent, ms. */
  idleMs?: number;
}

const PAGE_LINES = 500;

/**
 * The events of a job, as a stream from which the reader pulls: a slow reader delays no other work and needs no memory. Yields the current
 * state, or everything after a line of the log; then each change, until the job has ended or the node stops. If the remaining log lines do
 * not include the current state, it is sent after them. A reader that falls behind gets every state and every line that the log still
 * keeps, and only the newest progress. Throws TW_JOB_NOT_FOUND.
 */
export async function* jobEvents(
  jobs: JobService,
  id: string,
  { after, signal, idleMs = 15_000 }: EventOptions,
): AsyncGenerator<JobEvent> {
  let change = new AbortController();
  const onChange = () => change.abort();
  signal.addEventListener('abort', onChange);
  const unsubscribe = await jobs.subscribe(id, onChange);
  try {
    let previous = await jobs.get(id);
    let seq = after ?? previous.lines ?? 0;
    let known: JobStatus | undefined;
    if (after === undefined) {
      known = previous.status;
      yield currentState(previous, seq);
    }
    while (!signal.aborted) {
      change = new AbortController();
      const job = await jobs.get(id);
      for await (const line of linesUpTo(jobs, job, seq)) {
        seq = line.seq;
        if (line.status === undefined) yield { kind: 'log', seq, line };
        else {
          known = line.status;
          yield { kind: 'state', seq, status: known, time: line.time, ...(known === job.status && { job }) };
        }
      }
      // The line of this state came before `after`, or was dropped because the log was full.
      if (job.status !== known) yield currentState(job, seq);
      else if (job !== previous && job.status === 'running') yield { kind: 'progress', job };
      previous = job;
      known = job.status;
      if (hasEnded(job) || jobs.hasStopped) return;
      // A change ends the wait.
      const isIdle = await sleep(idleMs, true, { signal: change.signal }).catch(() => false);
      if (isIdle) yield { kind: 'idle' };
    }
  } finally {
    unsubscribe();
  }
}

/** The lines of the log that belong to a record of the job, read page by page on demand. */
async function* linesUpTo(jobs: JobService, { id, lines: last = 0 }: JobRecord, after: number) {
  while (after < last) {
    const page = await jobs.log(id, { after, limit: PAGE_LINES });
    for (const line of page) if (line.seq <= last) yield line;
    after = page.at(-1)?.seq ?? last;
  }
}

function currentState(job: JobRecord, seq: number): JobEvent {
  return { kind: 'state', seq, status: job.status, time: job.updated, job };
}

/**
 * Starts a job for the failed inputs of an ended job; `terms` may change the prepared inputs. Throws TW_JOB_NOT_FOUND,
 * TW_JOB_NOT_ENDED, TW_JOB_NOTHING_FAILED, TW_JOB_UPLOAD_GONE and the errors of `JobService.start`.
 */
export async function retryJob(
  jobs: JobService,
  id: string,
  process: Process,
  terms: (given: unknown) => unknown = (given) => given,
): Promise<JobRecord> {
  const job = await jobs.get(id);
  if (!hasEnded(job)) throw jobNotEnded(id, job.status);
  const failedPart = async (inputs: unknown) =>
    job.status === 'successful'
      ? process.retryInputs?.(inputs, job.results)
      : process.repeatInputs
        ? process.repeatInputs(inputs, id)
        : inputs;
  const inputs = await failedPart(job.inputs);
  if (inputs === null || inputs === undefined) throw nothingFailed(id);
  if (job.uploads) throw uploadDeleted(id);
  const given = terms(job.given === undefined ? inputs : await failedPart(job.given));
  const { resultOptions } = job;
  return jobs.start(process, inputs, {
    given: given === inputs ? undefined : given,
    resultOptions,
    retryOf: job,
  });
}
