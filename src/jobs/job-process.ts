/** A process: work that runs as a job, in the same way from the command line and over HTTP (OGC API Processes, part 1). */
import { TilewrightError } from '../errors.js';
import type { GridName } from '../grid/index.js';
import type { LogLevel } from '../storage/index.js';
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
  /** Does the work. Throws a TilewrightError if the inputs cannot be used. The job adds `seconds` to results that are an object. */
  run(inputs: unknown, context: JobContext): Promise<unknown>;
}

/** Results of a job as they are reported. The job adds its duration, including all runs on all nodes and the time between them. */
export type Timed<Results> = Results & { seconds: number };

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
   * are monotonic: lower values are ignored unless `anew` is set because the work restarted.
   */
  progress(now: Partial<JobProgress> & { share?: number; anew?: boolean }): void;
  /** Sets the message of the job: one line about what it is doing. */
  message(text: string): void;
  /** Adds a line to the log of the job. It is on disk within a second; a full log drops its oldest lines. */
  log(level: LogLevel, text: string): void;
  /** Sets the function that returns the results so far. They become the results if the job is cancelled or fails. */
  partial(results: () => unknown): void;
  /** Publishes a complete file in the folder of the job's results to all nodes. `object` is its name in the object store if it is there. */
  file(name: string, object?: string): Promise<void>;
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
