/**
 * A process: work that runs as a job, in the same way from the command line and over HTTP (OGC API Processes, part 1). With the counts of
 * tiles that most processes return, and the process that verifies the data folder.
 */
import { type ErrorMaker, messageOf, TilewrightError } from '../errors.js';
import type { GridName } from '../grid/index.js';
import {
  type LogLevel,
  type Storage,
  type VerifyOptions,
  type VerifyReport,
  verify,
} from '../storage/index.js';
import { COUNT, listOf, objectOf, TEXT } from '../utils/json-schema.js';
import { FailedWithResults } from './errors.js';

export interface Process {
  id: string;
  title: string;
  description: string;
  /** JSON Schema of the inputs. */
  inputs: Record<string, unknown>;
  /** The results by name: a title and a JSON Schema each. */
  outputs?: Record<string, { title: string; schema: Record<string, unknown> }>;
  /** Throws a TilewrightError if inputs that match the schema can never be used, whatever the data; no job is accepted then. */
  check?(inputs: unknown): void | Promise<void>;
  /** True if it is safe to run it again with the same inputs after an interruption at any moment. */
  resumable?: boolean;
  /**
   * Completes the inputs with values that all runs of the job must share. Called once when the job starts, on the node that leads it;
   * a resumed job keeps the result. The result must match the schema of the inputs.
   */
  prepare?(inputs: unknown, context: PrepareContext): Promise<unknown>;
  /**
   * For a job that has ended: the inputs that repeat only what failed; null if nothing failed. A job that failed or was
   * cancelled is repeated completely, with `repeatInputs`.
   */
  retryInputs?(inputs: unknown, results: unknown): Promise<unknown>;
  /** For a job that failed or was cancelled: the inputs that repeat it and use what it has stored. Without it, the same inputs. */
  repeatInputs?(inputs: unknown, job: string): Promise<unknown>;
  /**
   * For work that is divided by cells, so that each run does the work of some of them: combines the results of the runs. Without it, a
   * run returns the results of the job.
   */
  merge?(parts: unknown[]): unknown;
  /** JSON Schema of the result of a run, for validating those of other nodes. */
  part?: object;
  /**
   * Called with the merged results when all work is done. Throws a TilewrightError if the job has achieved nothing. A return value
   * replaces the results. For a job over several nodes it runs on one of them, which has applied everything that the runs have committed.
   */
  conclude?(results: unknown, context: ConcludeContext, inputs: unknown): unknown;
  /**
   * For work that is divided by cells: true if its runs wait for each other (`allGather`). All runs then start together, and the job
   * fails if one of them is lost.
   */
  usesBarrier?(inputs: unknown): boolean;
  /** True if this node can take over a job that another node has accepted; without it, every node can. */
  canTakeOver?(inputs: unknown): Promise<boolean>;
  /**
   * Does the work. Throws a TilewrightError if the inputs cannot be used. The job adds `seconds` and `warnings` to results that are an
   * object.
   */
  run(inputs: unknown, context: JobContext): Promise<unknown>;
}

/** Results of a job as they are reported. The job adds its duration, including all runs on all nodes and the time between them. */
export type Timed<Results> = Results & { seconds: number; warnings?: string[] };

/** Counts of tiles, or of other units of the work. */
export interface JobProgress {
  total: number;
  done: number;
  failed: number;
  skipped: number;
}

/** The interface of the work to its job. */
export interface JobContext {
  readonly id: string;
  /** Aborted when the job is cancelled or the node stops; the work should then throw `signal.reason` soon. */
  readonly signal: AbortSignal;
  /** True if this run should work on the tiles of a cell; other cells belong to other runs. */
  isMine(cell: { grid: GridName; geocode: string }): boolean;
  /**
   * Waits until every run of the job has contributed a value; resolves to all values, in the same order everywhere. All runs must make the
   * same number of calls, one after another.
   */
  allGather<T>(value: T): Promise<T[]>;
  /**
   * Reports the counts so far and, if counts are too coarse, the fraction of the work that is done (0 to 1, without skipped work). Counters
   * are monotonic: lower values are ignored unless `isReset` is set because work restarted or has failed.
   */
  progress(now: Partial<JobProgress> & { share?: number; isReset?: boolean }): void;
  /** Sets the message of the job: one line about what it is doing. */
  message(text: string): void;
  /** Adds a line to the log of the job. It is on disk within a second; a full log drops its oldest lines. */
  log(level: LogLevel, text: string): void;
  /** Sets the function that returns the results so far. They become the results if the job is cancelled or fails. */
  partial(results: () => unknown): void;
  /** Publishes a complete file in the folder of the job's results to all nodes. `object` is its name in the object store if it is there. */
  file(name: string, object?: string): Promise<void>;
}

/** The context of a part of the work, and the warnings that this part logs. */
export function recordWarnings(job: JobContext): { job: JobContext; warnings: string[] } {
  const warnings: string[] = [];
  const log: JobContext['log'] = (level, text) => {
    if (level === 'warning') warnings.push(text);
    job.log(level, text);
  };
  return { job: { ...job, log }, warnings };
}

/** The interface of `conclude` to its job. */
export type ConcludeContext = Pick<JobContext, 'id' | 'message' | 'log' | 'signal' | 'file'> & {
  /** When the job first ran, milliseconds since 1970. */
  readonly started: number;
};

/** The context of `runLocally` and of the distribution of a job over nodes. */
export type FullJobContext = JobContext & ConcludeContext;

/** The context of `prepare`. */
export type PrepareContext = Pick<JobContext, 'message' | 'log' | 'signal'>;

/** Combines the results of all runs. Throws FailedWithResults if the job has achieved nothing. */
export async function concludeResults(
  process: Process,
  parts: unknown[],
  context: ConcludeContext,
  inputs: unknown,
): Promise<unknown> {
  if (!process.merge) return parts[0];
  const results = process.merge(parts);
  try {
    return (await process.conclude?.(results, context, inputs)) ?? results;
  } catch (error) {
    if (error === context.signal.reason || !(error instanceof TilewrightError)) throw error;
    throw new FailedWithResults(error, results);
  }
}

/** Does all work in this process. */
export async function runLocally(
  process: Process,
  inputs: unknown,
  context: FullJobContext,
): Promise<unknown> {
  const { merge } = process;
  const partial: JobContext['partial'] = (part) => context.partial(merge ? () => merge([part()]) : part);
  return concludeResults(process, [await process.run(inputs, { ...context, partial })], context, inputs);
}

/** Maximum number of problems that are written to the log of the job; the results can contain more problems. */
const MAX_LOGGED_PROBLEMS = 100;

function verdict(problems: number): string {
  if (problems === 0) return 'no problems found';
  return problems === 1
    ? '1 problem: a part of the data is damaged'
    : `${problems} problems: parts of the data are damaged`;
}

/** Verifies the data folder as a job, so that a server that has the folder open can verify it. */
export function verifyProcess(storage: Storage, options: VerifyOptions = {}): Process {
  return {
    id: 'verify',
    title: 'Verify the data folder',
    description:
      'Checks that all files of every record exist and that all checksums match. Lists orphaned files, which belong to no record.',
    inputs: { type: 'object', additionalProperties: false, properties: {} },
    resumable: true,
    run: async (_inputs, job): Promise<VerifyReport> => {
      const onProgress = ({ tiles }: { tiles: number }) => {
        job.signal.throwIfAborted();
        job.progress({ total: storage.index.size, done: tiles });
      };
      const report = await verify(storage, onProgress, options);
      const { problems, problemCount } = report;
      for (const { kind, what } of problems.slice(0, MAX_LOGGED_PROBLEMS))
        job.log('error', `${kind}: ${what}`);
      job.message(verdict(problemCount));
      return report;
    },
  };
}

/** The tiles of a run, or of all runs of a job, and the reasons why some are left out or fail. Plain JSON. */
export interface TileCounts {
  /** Tiles that were made, or read by an analysis. */
  tiles: number;
  /** Tiles that were left out, by reason. */
  skipped: Record<string, number>;
  /** The first tiles that failed. */
  failed: { tile: string; code: string; message: string }[];
  failures: number;
  /** Bytes of files that were fetched from the object store; absent if there were none. */
  bytesFetched?: number;
}

/** JSON Schema of the members that every `TileCounts` has. */
export const TILE_COUNTS_SCHEMA = {
  tiles: COUNT,
  skipped: { type: 'object', additionalProperties: COUNT },
  failed: listOf(objectOf({ tile: TEXT, code: TEXT, message: TEXT })),
  failures: COUNT,
};

export const MAX_LISTED_FAILURES = 1000;
const MAX_LISTED_REASONS = 3;

export function emptyCounts(): TileCounts {
  return { tiles: 0, skipped: {}, failed: [], failures: 0 };
}

export function addSkipped({ skipped }: Pick<TileCounts, 'skipped'>, reason: string, count = 1): void {
  skipped[reason] = (skipped[reason] ?? 0) + count;
}

export function addFetched(counts: Pick<TileCounts, 'bytesFetched'>, bytes: number): void {
  if (bytes > 0) counts.bytesFetched = (counts.bytesFetched ?? 0) + bytes;
}

/** Counts and logs a tile that failed. `unknown` makes an error of one that has no code. */
export function addFailure(
  counts: TileCounts,
  job: JobContext,
  tile: string,
  error: unknown,
  unknown: ErrorMaker<[tile: string, detail: string]>,
): void {
  const { code, message } =
    error instanceof TilewrightError ? error : unknown.because(error, tile, messageOf(error));
  if (counts.failures < MAX_LISTED_FAILURES) {
    job.log('error', `${tile}: ${message} [${code}]`);
    counts.failed.push({ tile, code, message });
  }
  counts.failures++;
}

/** Adds up numbers of tiles by reason. */
export function mergeSkipped(parts: readonly Pick<TileCounts, 'skipped'>[]): Record<string, number> {
  const total = emptyCounts();
  for (const { skipped } of parts)
    for (const [reason, count] of Object.entries(skipped)) addSkipped(total, reason, count);
  return total.skipped;
}

export function mergeCounts(parts: readonly TileCounts[]): TileCounts {
  const total: TileCounts = {
    tiles: sumOf(parts, ({ tiles }) => tiles),
    skipped: mergeSkipped(parts),
    failed: parts.flatMap(({ failed }) => failed).slice(0, MAX_LISTED_FAILURES),
    failures: sumOf(parts, ({ failures }) => failures),
  };
  addFetched(
    total,
    sumOf(parts, ({ bytesFetched = 0 }) => bytesFetched),
  );
  return total;
}

export function sumOf<T>(parts: readonly T[], of: (part: T) => number): number {
  return parts.reduce((sum, part) => sum + of(part), 0);
}

/** The messages of the first failures, for an error that names reasons. */
export function firstReasons({ failed }: Pick<TileCounts, 'failed'>): string[] {
  return failed.slice(0, MAX_LISTED_REASONS).map(({ message }) => message);
}
