/** A job that has not ended: writes its record and its log. */
import { type JobRecord, type LogRecord, redactDataFolder, type Storage } from '../storage/index.js';
import { visibleText } from '../utils/text.js';
import { FailedWithResults, jobDismissed, jobTakenOver } from './errors.js';
import type { JobLog } from './log.js';
import { type FullJobContext, type Process, runLocally } from './process.js';
import { hasEnded, type JobRegistry, jobError, QUEUED_STATE, stateLine } from './records.js';

/** Minimum interval between writes of progress and log lines. */
const WRITE_INTERVAL_MS = 1000;

/** Number of warnings in the results of a job. The log has more. */
const MAX_WARNINGS = 100;

export type JobListener = (job: JobRecord) => void;

/** Called with each line of the log of a job, which may not be on disk yet. */
export type LineListener = (job: Pick<JobRecord, 'id' | 'process'>, line: LogRecord) => void;

/**
 * Invariants: `published` is the last record that is on disk, together with the log line of its state, and that other nodes can know;
 * listeners get no other. Records are written in the order of the states of the job, and no record follows the final one.
 */
export class JobExecution {
  readonly listeners = new Set<JobListener>();
  readonly abort = new AbortController();
  /** The record that will be written next. */
  private pending: JobRecord;
  /** The record that was written last, or waits for earlier writes. */
  private handedIn: JobRecord;
  /** Set while progress or log lines wait to be written. */
  private timer: NodeJS.Timeout | undefined;
  private partialResults: (() => unknown) | undefined;
  /** Removes local paths from messages, logs and results, which everybody who may read jobs can see. */
  private readonly redactPaths: <T>(value: T) => T;

  /** `writes` settles when all writes of the record so far, one after another, have ended. The first write accepts the job. */
  constructor(
    private readonly storage: Storage,
    readonly process: Process,
    private readonly log: JobLog,
    public published: JobRecord,
    private writes: Promise<void>,
    private readonly registry?: JobRegistry,
    private readonly onLine?: LineListener,
  ) {
    this.pending = published;
    this.handedIn = published;
    this.redactPaths = redactDataFolder(storage.dir);
  }

  get id(): string {
    return this.pending.id;
  }

  get isQueued(): boolean {
    return this.pending.status === 'accepted';
  }

  /** Settles when everything written so far is on disk. */
  get written(): Promise<void> {
    return this.writes;
  }

  /** Does the work. When this resolves, the results are on disk. */
  async run(): Promise<void> {
    const now = Date.now();
    const { started } = this.pending;
    await this.write({ status: 'running', ...(started === undefined ? { started: now } : { resumed: now }) });
    this.abort.signal.throwIfAborted();
    const { inputs } = this.pending;
    let { given = inputs } = this.pending;
    if (this.process.prepare && this.pending.given === undefined) {
      given = await this.process.prepare(inputs, this.context());
      if (this.registry) given = await this.registry.storePrepared(this.id, given);
      await this.write({ given });
    }
    const work = this.registry?.work ?? runLocally;
    const results = await work(this.process, given, this.context());
    const finished = this.endNow();
    await this.write({ status: 'successful', finished, results: this.resultsAt(finished, results) });
  }

  /**
   * Ends the job as cancelled or failed, with its partial results. If this node cannot write the end, `published` and the other nodes still
   * get it, so that the job does not run again at the next start of a cluster node. Throws TW_JOB_TAKEN_OVER, and then the job goes on.
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
      await write(this.partialResults).catch((failure) => {
        if (jobTakenOver.is(failure)) throw failure;
        // The results may be the reason why the write failed, so they are left out.
        return this.write({ ...end, results: undefined });
      });
    } catch (failure) {
      if (jobTakenOver.is(failure)) throw failure;
      this.published = { ...this.pending, ...end, results: undefined };
      await this.registry?.publish(this.published, true);
      throw failure;
    }
  }

  /** Leaves the job to the next process. A queued job needs no change. */
  async suspend(): Promise<void> {
    if (!this.isQueued) await this.write({ ...QUEUED_STATE, crashes: 0 }, 'the node is stopping');
  }

  get isResumable(): boolean {
    return this.pending.resumable === true;
  }

  /** Removes the files of an ended job: its uploads and its files for resuming. */
  async removeScratch(): Promise<void> {
    for (const name of [this.id, ...(this.published.uploads ?? [])])
      await this.storage.scratch.remove(name).catch((error) => {
        // The next start removes them.
        const text = `files of the job could not be removed: ${jobError(error).message}`;
        this.addLine({ time: Date.now(), level: 'warning', text });
        return this.write({});
      });
  }

  /** Notifies listeners in microtasks, so that their errors do not reach the job. */
  notify(): void {
    for (const listener of this.listeners) queueMicrotask(() => listener(this.published));
  }

  /** The current time, but not before the start, which may stem from the clock of another node. */
  private endNow(): number {
    return Math.max(Date.now(), this.pending.started ?? 0);
  }

  /** Adds the duration and the warnings of the job to the results. A single run does not know when earlier runs started. */
  private resultsAt(finished: number, results: unknown): unknown {
    const { started, warnings } = this.pending;
    const isObject = typeof results === 'object' && results !== null && !Array.isArray(results);
    if (!isObject || started === undefined) return this.redactPaths(results);
    return {
      ...this.redactPaths(results),
      ...(warnings && { warnings }),
      seconds: (finished - started) / 1000,
    };
  }

  /** A text that everybody who may read jobs can see. */
  private publicText(text: string): string {
    return visibleText(this.redactPaths(text));
  }

  private context(): FullJobContext {
    const { started = Date.now() } = this.pending;
    return {
      id: this.id,
      started,
      signal: this.abort.signal,
      isMine: () => true,
      allGather: async (value) => [value],
      progress: ({ share, isReset = false, ...tiles }) => {
        const now = { ...this.pending.tiles };
        for (const count of ['total', 'done', 'failed', 'skipped'] as const)
          now[count] = Math.max(isReset ? 0 : now[count], tiles[count] ?? 0);
        this.writeLater({
          tiles: now,
          ...(share !== undefined && { share: Math.max(this.pending.share ?? 0, share) }),
        });
      },
      message: (text) => this.writeLater({ message: this.publicText(text) }),
      log: (level, text) => {
        if (this.pending.status !== 'running') return;
        const line = { time: Date.now(), level, text: this.publicText(text) };
        this.addLine(line);
        const { warnings = [] } = this.pending;
        const isNew = level === 'warning' && warnings.length < MAX_WARNINGS && !warnings.includes(line.text);
        this.writeLater(isNew ? { warnings: [...warnings, line.text] } : {});
      },
      partial: (results) => {
        this.partialResults = results;
      },
      file: async (name, object) => {
        if (object !== undefined) this.writeLater({ files: { ...this.pending.files, [name]: object } });
      },
    };
  }

  private addLine(line: LogRecord): void {
    this.log.add(line);
    this.onLine?.(this.pending, line);
  }

  private writeLater(change: Partial<JobRecord>): void {
    // Late work may still report after the end, or after the job was left to the next process.
    if (this.pending.status !== 'running') return;
    this.pending = { ...this.pending, ...change };
    // If progress cannot be written, the job continues: the next record includes it, and the end meets the error.
    this.timer ??= setTimeout(() => this.write({}).catch(() => undefined), WRITE_INTERVAL_MS);
  }

  /** Writes the changed record and its log lines to disk, after all earlier writes, and notifies the listeners. */
  private async write(change: Partial<JobRecord>, remark?: string): Promise<void> {
    const { catalogue } = this.storage;
    const { status } = this.pending;
    const lines = this.log.last + (change.status !== undefined && change.status !== status ? 1 : 0);
    const record: JobRecord = { ...this.pending, ...change, lines, updated: Date.now() };
    // Prepared inputs refer to uploads, which do not exist after the end.
    if (hasEnded(record) && record.uploads) delete record.given;
    // Throws if the results are not JSON; nothing has changed then. Earlier details are on disk before this record: after a failed write,
    // the catalogue accepts no others.
    const puts = catalogue.jobs.set(record, this.handedIn);
    clearTimeout(this.timer);
    this.timer = undefined;
    if (record.status !== status) this.addLine(stateLine(record, remark));
    this.pending = record;
    this.handedIn = record;
    const changes = [...puts, ...this.log.changes()];
    // The caller of the earlier write gets its error; this write only waits for it.
    const before = this.writes.catch(() => undefined);
    this.writes = before.then(async () => {
      await catalogue.write(changes);
      await this.registry?.publish(record, record.status !== status);
      this.published = record;
      this.notify();
    });
    return this.writes;
  }
}
