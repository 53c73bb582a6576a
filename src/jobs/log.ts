/** Logs of jobs: numbered lines, of which the newest are kept. */
import type { Catalogue, CatalogueChange, LogRecord } from '../storage/index.js';

/** Limits of a log: lines, and bytes of their texts. */
export const MAX_LINES = 10_000;
export const MAX_LOG_BYTES = 1e6;
/** Longer lines are truncated. */
export const MAX_LINE_LENGTH = 4000;

export interface LogLine extends LogRecord {
  /** Lines of a job are numbered from 1. */
  seq: number;
}

const prefixOf = (job: string) => `${job}/`;
const keyOf = (job: string, seq: number) => `${prefixOf(job)}${String(seq).padStart(10, '0')}`;
const seqOf = (key: string) => Number(key.slice(key.lastIndexOf('/') + 1));
const sizeOf = ({ text }: LogRecord) => Buffer.byteLength(text);

/** Reads lines from disk, starting after line `after`. Damaged lines are skipped. */
export async function readLog(
  { logs }: Catalogue,
  job: string,
  after: number,
  limit: number,
): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for await (const { key, record } of logs.scan({ prefix: prefixOf(job), after: keyOf(job, after), limit }))
    if (record) lines.push({ seq: seqOf(key), ...record });
  return lines;
}

/** The changes that remove the log of a job from disk. */
export async function deleteLog({ logs }: Catalogue, job: string): Promise<CatalogueChange[]> {
  const changes: CatalogueChange[] = [];
  for await (const key of logs.keys({ prefix: prefixOf(job) })) changes.push(logs.delete(key));
  return changes;
}

/**
 * The log of a job that has not ended. Invariants: The kept lines have the numbers `first` to `first + sizes.length - 1`
 * and are within MAX_LINES and MAX_LOG_BYTES. `pending` has the newest of them. When all changes returned so far are on
 * disk, the disk has exactly the other kept lines, which are the lines `first` to `written`.
 */
export class JobLog {
  private readonly sizes: number[] = [];
  private bytes = 0;
  private first = 1;
  private pending: LogRecord[] = [];
  private written = 0;
  /** Lines from this number up to `first` may still be on disk. */
  private oldest = 1;

  private constructor(
    private readonly catalogue: Catalogue,
    private readonly job: string,
  ) {}

  /** The log with the lines that an earlier process has written. */
  static async open(catalogue: Catalogue, job: string): Promise<JobLog> {
    const log = new JobLog(catalogue, job);
    for await (const { key, record } of catalogue.logs.scan({ prefix: prefixOf(job) })) {
      if (log.sizes.length === 0) log.first = log.oldest = seqOf(key);
      log.written = seqOf(key);
      log.push(record ? sizeOf(record) : 0);
    }
    return log;
  }

  /** The log of a job whose lines up to `last` are on another node; of a new job, if `last` is 0. */
  static after(catalogue: Catalogue, job: string, last: number): JobLog {
    const log = new JobLog(catalogue, job);
    log.first = log.oldest = last + 1;
    log.written = last;
    return log;
  }

  /** Number of the newest line; 0 if there is none. */
  get last(): number {
    return this.first + this.sizes.length - 1;
  }

  add(line: LogRecord): void {
    const kept = { ...line, text: line.text.slice(0, MAX_LINE_LENGTH) };
    this.pending.push(kept);
    this.push(sizeOf(kept));
    // Drops lines that exceeded the limits before they were written.
    this.pending.splice(0, this.pending.length - this.sizes.length);
  }

  /** The changes that bring the log on disk up to date with this log. Each call returns only what is new since the last one. */
  changes(): CatalogueChange[] {
    const { logs } = this.catalogue;
    const keyOfLine = (seq: number) => keyOf(this.job, seq);
    const next = this.last + 1;
    const changes: CatalogueChange[] = [];
    for (let seq = this.oldest; seq < this.first && seq <= this.written; seq++)
      changes.push(logs.delete(keyOfLine(seq)));
    for (const [i, line] of this.pending.entries())
      changes.push(logs.set(keyOfLine(next - this.pending.length + i), line));
    this.oldest = this.first;
    this.written = next - 1;
    this.pending = [];
    return changes;
  }

  private push(size: number): void {
    this.sizes.push(size);
    this.bytes += size;
    while (this.sizes.length > MAX_LINES || this.bytes > MAX_LOG_BYTES) {
      this.bytes -= this.sizes.shift() as number;
      this.first++;
    }
  }
}
