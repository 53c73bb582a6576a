/** A job that has not ended: its record and its log on their way to disk. */
import { type JobRecord, redactDataFolder, type Storage } from '../../storage/index.js';
import { FailedWithResults, jobDismissed } from '../errors.js';
import type { JobLog } from './job-log.js';
import { hasEnded, jobError, QUEUED_STATE, stateLine } from './job-records.js';
import type { JobRegistry } from './job-registry.js';
import { type FullJobContext, type Process, runLocally } from './process.js';

/** Progress and lines of the log are written at most this often, ms. */
const WRITE_INTERVAL_MS = 500;

export type JobListener = (job: JobRecord) => void;

/**
 * Invariants: `told` is the last record that is on disk, together with the line of the log that tells of its state, and of which other
 * nodes can know, and listeners hear of no other; records are written in the order of the job's states, and none changes one that has ended.
 */
export class JobExecution {
  readonly listeners = new Set<JobListener>();
  readonly abort = new AbortController();
  /** The record to be written next. */
  private pending: JobRecord;
  /** Set while progress or lines wait to be written. */
  private timer: NodeJS.Timeout | undefined;
  private partialResults: (() => unknown) | undefined;
  /** Everybody who may ask for jobs reads their messages, logs and results. */
  private readonly redactPaths: <T>(value: T) => T;

  /** `writes` are all writes of the record so far, one after another; the first accepts the job. */
  constructor(
    private readonly storage: Storage,
    readonly process: Process,
    private readonly log: JobLog,
    public published: JobRecord,
    private writes: Promise<void>,
    private readonly board?: JobRegistry,
  ) {
    this.pending = published;
    this.redactPaths = redactDataFolder(storage.dir);
  }

  get id(): string {
    return this.pending.id;
  }

  get isQueued(): boolean {
    return this.pending.status === 'accepted';
  }

  /** When what has been written so far is on disk. */
  get written(): Promise<void> {
    return this.writes;
  }

  /** Does the work; what it returns is on disk when this resolves. */
  async run(): Promise<void> {
    const now = Date.now();
    const { started } = this.pending;
    await this.write({ status: 'running', ...(started === undefined ? { started: now } : { resumed: now }) });
    this.abort.signal.throwIfAborted();
    const { inputs } = this.pending;
    let { given = inputs } = this.pending;
    if (this.process.prepare && this.pending.given === undefined) {
      given = await this.process.prepare(inputs, this.context());
      if (this.board) given = await this.board.storePrepared(this.id, given);
      await this.write({ given });
    }
    const work = this.board?.work ?? runLocally;
    const results = await work(this.process, given, this.context());
    const finished = this.endNow();
    await this.write({ status: 'successful', finished, results: this.resultsAt(finished, results) });
  }

  /**
   * Ends the job as cancelled or failed, with what it has made so far. If this node cannot write the end, `told` and the other nodes have it
   * all the same, so that the next start of a node of a cluster does not run the job again.
   */
  async end(reason: unknown): Promise<void> {
    const status = jobDismissed.is(reason) ? 'dismissed' : 'failed';
    const { error, results } =
      reason instanceof FailedWithResults ? reason : { error: reason, results: undefined };
    const finished = this.endNow();
    const end = { status, finished, error: this.redactPaths(jobError(error)) } as const;
    const write = async (partial?: () => unknown) =>
      this.write({ ...end, results: this.resultsAt(finished, results ?? partial?.()) });
    try {
      // Results that could not be written are what failed.
      await write(this.partialResults).catch(() => this.write({ ...end, results: undefined }));
    } catch (failure) {
      this.published = { ...this.pending, ...end, results: undefined };
      await this.board?.publish(this.published, true);
      throw failure;
    }
  }

  /** Leaves the job to the process that comes next. Where it waits already, there is nothing to write. */
  async suspend(): Promise<void> {
    if (!this.isQueued) await this.write({ ...QUEUED_STATE, crashes: 0 }, 'the node is stopping');
  }

  get isResumable(): boolean {
    return this.pending.resumable === true;
  }

  /** Removes the files of a job that has ended: those that were sent for it, and what it would have gone on from. */
  async removeScratch(): Promise<void> {
    for (const name of [this.id, ...(this.published.uploads ?? [])])
      await this.storage.scratch.remove(name).catch((error) => {
        // The next open removes it.
        const text = `files of the job could not be removed: ${jobError(error).message}`;
        this.log.add({ time: Date.now(), level: 'warning', text });
        return this.write({});
      });
  }

  /** A listener that throws is not the job's concern. */
  notify(): void {
    for (const listener of this.listeners) queueMicrotask(() => listener(this.published));
  }

  /** Not before the start, which may be by the clock of another node. */
  private endNow(): number {
    return Math.max(Date.now(), this.pending.started ?? 0);
  }

  /** Adds the duration of the whole job to the results. A single run does not know when earlier runs started. */
  private resultsAt(finished: number, results: unknown): unknown {
    const { started } = this.pending;
    const isObject = typeof results === 'object' && results !== null && !Array.isArray(results);
    if (!isObject || started === undefined) return this.redactPaths(results);
    return { ...this.redactPaths(results), seconds: (finished - started) / 1000 };
  }

  private context(): FullJobContext {
    const { started = Date.now() } = this.pending;
    return {
      id: this.id,
      started,
      signal: this.abort.signal,
      isMine: () => true,
      allGather: async (word) => [word],
      progress: ({ share, anew = false, ...tiles }) => {
        const now = { ...this.pending.tiles };
        for (const count of ['total', 'done', 'failed', 'skipped'] as const)
          now[count] = Math.max(anew ? 0 : now[count], tiles[count] ?? 0);
        this.writeLater({
          tiles: now,
          ...(share !== undefined && { share: Math.max(this.pending.share ?? 0, share) }),
        });
      },
      message: (text) => this.writeLater({ message: this.redactPaths(text) }),
      log: (level, text) => {
        if (this.pending.status !== 'running') return;
        this.log.add({ time: Date.now(), level, text: this.redactPaths(text) });
        this.writeLater({});
      },
      partial: (results) => {
        this.partialResults = results;
      },
      file: async (name, object) => {
        if (object !== undefined) this.writeLater({ files: { ...this.pending.files, [name]: object } });
      },
    };
  }

  private writeLater(change: Partial<JobRecord>): void {
    // What late work still says, after the end or after the job was left to the next process.
    if (this.pending.status !== 'running') return;
    this.pending = { ...this.pending, ...change };
    // Where progress cannot be written the job goes on: the next record holds it too, and the end meets the error.
    this.timer ??= setTimeout(() => this.write({}).catch(() => undefined), WRITE_INTERVAL_MS);
  }

  /** Puts the changed record and the lines of its log on disk, after those before them, and tells the listeners. */
  private async write(change: Partial<JobRecord>, remark?: string): Promise<void> {
    const { catalogue } = this.storage;
    const { status } = this.pending;
    const lines = this.log.last + (change.status !== undefined && change.status !== status ? 1 : 0);
    const record: JobRecord = { ...this.pending, ...change, lines, updated: Date.now() };
    // What it says of files that were sent leads nowhere after the end.
    if (hasEnded(record) && record.uploads) delete record.given;
    // Throws where the results are no JSON: then nothing has changed.
    const put = catalogue.jobs.set(record.id, record);
    clearTimeout(this.timer);
    this.timer = undefined;
    if (record.status !== status) this.log.add(stateLine(record, remark));
    this.pending = record;
    const changes = [put, ...this.log.changes()];
    // Who asked for the earlier write has its error; this one only waits for it to be over.
    const before = this.writes.catch(() => undefined);
    this.writes = before.then(async () => {
      await catalogue.write(changes);
      await this.board?.publish(record, record.status !== status);
      this.published = record;
      this.notify();
    });
    return this.writes;
  }
}
