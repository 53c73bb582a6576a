import type { Readable } from 'node:stream';
import type { Peer } from '../dht/index.js';
import type { JobRecord } from '../storage/index.js';
import type { JobListener } from './job-execution.js';
import type { IdempotencyKey } from './job-idempotency-keys.js';
import type { LogLine } from './job-log.js';
import type { Process } from './job-process.js';

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
}

/** `repeated` is true if an earlier, identical request has started the job. */
export interface StartedJob {
  job: JobRecord;
  repeated: boolean;
}

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
