/** A job that has not ended: its record and its log on their way to disk. */
import { type JobRecord, relativePaths, type Storage } from '../../storage/index.js';
import { FailedWithResults, jobDismissed } from '../errors.js';
import type { JobLog } from './job-log.js';
import { hasEnded, jobError, stateLine, WAITING } from './job-records.js';
import type { JobBoard } from './job-registry.js';
import { type Process, runWhole, type WholeContext } from './process.js';

/** Progress and lines of the log are written at most this often, ms. */
const WRITE_INTERVAL = 500;

export type JobListener = (job: JobRecord) => void;

/**
 * Invariants: `told` is the last record that is on disk, together with the line of the log that tells of its state, and of which other
 * nodes can know, and listeners hear of no other; records are written in the order of the job's states, and none changes one that has ended.
 */
export class LiveJob {
  readonly listeners = new Set<JobListener>();
  readonly abort = new AbortController();
  /** The record to be written next. */
  private next: JobRecord;
  /** Set while progress or lines wait to be written. */
  private timer: NodeJS.Timeout | undefined;
  private partial: (() => unknown) | undefined;
  /** Everybody who may ask for jobs reads their messages, logs and results. */
  private readonly relative: <T>(value: T) => T;

  /** `writes` are all writes of the record so far, one after another; the first accepts the job. */
  constructor(
    private readonly storage: Storage,
    readonly process: Process,
    private readonly log: JobLog,
    public told: JobRecord,
    private writes: Promise<void>,
    private readonly board?: JobBoard,
  ) {
    this.next = told;
    this.relative = relativePaths(storage.dir);
  }

  get id(): string {
    return this.next.id;
  }

  get waits(): boolean {
    return this.next.status === 'accepted';
  }

  /** When what has been written so far is on disk. */
  get written(): Promise<void> {
    return this.writes;
  }

  /** Does the work; what it returns is on disk when this resolves. */
  async run(): Promise<void> {
    const now = Date.now();
    const { started } = this.next;
    await this.write({ status: 'running', ...(started === undefined ? { started: now } : { resumed: now }) });
    this.abort.signal.throwIfAborted();
    const { inputs } = this.next;
    let { given = inputs } = this.next;
    if (this.process.prepare && this.next.given === undefined) {
      given = await this.process.prepare(inputs, this.context());
      if (this.board) given = await this.board.prepared(this.id, given);
      await this.write({ given });
    }
    const work = this.board?.work ?? runWhole;
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
    const end = { status, finished, error: this.relative(jobError(error)) } as const;
    const write = async (partial?: () => unknown) =>
      this.write({ ...end, results: this.resultsAt(finished, results ?? partial?.()) });
    try {
      // Results that could not be written are what failed.
      await write(this.partial).catch(() => this.write({ ...end, results: undefined }));
    } catch (failure) {
      this.told = { ...this.next, ...end, results: undefined };
      await this.board?.publish(this.told, true);
      throw failure;
    }
  }

  /** Leaves the job to the process that comes next. Where it waits already, there is nothing to write. */
  async leave(): Promise<void> {
    if (!this.waits) await this.write({ ...WAITING, crashes: 0 }, 'the node is stopping');
  }

  get isResumable(): boolean {
    return this.next.resumable === true;
  }

  /** Removes the files of a job that has ended: those that were sent for it, and what it would have gone on from. */
  async removeScratch(): Promise<void> {
    for (const name of [this.id, ...(this.told.uploads ?? [])])
      await this.storage.removeScratch(name).catch((error) => {
        // The next open removes it.
        const text = `files of the job could not be removed: ${jobError(error).message}`;
        this.log.add({ time: Date.now(), level: 'warning', text });
        return this.write({});
      });
  }

  /** A listener that throws is not the job's concern. */
  tell(): void {
    for (const listener of this.listeners) queueMicrotask(() => listener(this.told));
  }

  /** Not before the start, which may be by the clock of another node. */
  private endNow(): number {
    return Math.max(Date.now(), this.next.started ?? 0);
  }

  /** Adds the duration of the whole job to the results. A single run does not know when earlier runs started. */
  private resultsAt(finished: number, results: unknown): unknown {
    const { started } = this.next;
    const isObject = typeof results === 'object' && results !== null && !Array.isArray(results);
    if (!isObject || started === undefined) return this.relative(results);
    return { ...this.relative(results), seconds: (finished - started) / 1000 };
  }

  private context(): WholeContext {
    const { started = Date.now() } = this.next;
    return {
      id: this.id,
      started,
      signal: this.abort.signal,
      isMine: () => true,
      meet: async (word) => [word],
      progress: ({ share, anew = false, ...tiles }) => {
        const now = { ...this.next.tiles };
        for (const count of ['total', 'done', 'failed', 'skipped'] as const)
          now[count] = Math.max(anew ? 0 : now[count], tiles[count] ?? 0);
        this.writeLater({
          tiles: now,
          ...(share !== undefined && { share: Math.max(this.next.share ?? 0, share) }),
        });
      },
      message: (text) => this.writeLater({ message: this.relative(text) }),
      log: (level, text) => {
        if (this.next.status !== 'running') return;
        this.log.add({ time: Date.now(), level, text: this.relative(text) });
        this.writeLater({});
      },
      partial: (results) => {
        this.partial = results;
      },
      file: async (name, object) => {
        if (object !== undefined) this.writeLater({ files: { ...this.next.files, [name]: object } });
      },
    };
  }

  private writeLater(change: Partial<JobRecord>): void {
    // What late work still says, after the end or after the job was left to the next process.
    if (this.next.status !== 'running') return;
    this.next = { ...this.next, ...change };
    // Where progress cannot be written the job goes on: the next record holds it too, and the end meets the error.
    this.timer ??= setTimeout(() => this.write({}).catch(() => undefined), WRITE_INTERVAL);
  }

  /** Puts the changed record and the lines of its log on disk, after those before them, and tells the listeners. */
  private async write(change: Partial<JobRecord>, remark?: string): Promise<void> {
    const { catalogue } = this.storage;
    const { status } = this.next;
    const lines = this.log.last + (change.status !== undefined && change.status !== status ? 1 : 0);
    const record: JobRecord = { ...this.next, ...change, lines, updated: Date.now() };
    // What it says of files that were sent leads nowhere after the end.
    if (hasEnded(record) && record.uploads) delete record.given;
    // Throws where the results are no JSON: then nothing has changed.
    const put = catalogue.jobs.set(record.id, record);
    clearTimeout(this.timer);
    this.timer = undefined;
    if (record.status !== status) this.log.add(stateLine(record, remark));
    this.next = record;
    const changes = [put, ...this.log.changes()];
    // Who asked for the earlier write has its error; this one only waits for it to be over.
    const before = this.writes.catch(() => undefined);
    this.writes = before.then(async () => {
      await catalogue.write(changes);
      await this.board?.publish(record, record.status !== status);
      this.told = record;
      this.tell();
    });
    return this.writes;
  }
}
