/** A process: work that runs as a job, the same from the command line and over HTTP (OGC API Processes, part 1). */
import { TilewrightError } from '../../errors.js';
import type { GridName } from '../../grid/index.js';
import type { LogLevel } from '../../storage/index.js';
import { FailedWithResults } from '../errors.js';

export interface Process {
  id: string;
  title: string;
  description: string;
  /** JSON Schema of the inputs. */
  inputs: Record<string, unknown>;
  /** What the results are, by their names: a title and a JSON Schema each. */
  outputs?: Record<string, { title: string; schema: Record<string, unknown> }>;
  /** Throws a TilewrightError where inputs that fit the schema cannot be used, whatever the data are: then no job is accepted. */
  check?(inputs: unknown): void | Promise<void>;
  /** Whether it is safe to run it again with the same inputs after it was cut off at any moment. */
  resumable?: boolean;
  /**
   * Completes the inputs with values that all runs of the job must share. Called once when the job starts, on the node that leads it;
   * a resumed job keeps the result. The result must match the schema of the inputs.
   */
  prepare?(inputs: unknown, context: PrepareContext): Promise<unknown>;
  /**
   * Of a run that ended: the inputs that do again only what failed in it; null where nothing did. A run that failed or was
   * cancelled as a whole is done again as a whole, without this.
   */
  retryInputs?(inputs: unknown, results: unknown): Promise<unknown>;
  /**
   * Of work that goes by cells, so that several runs can each do that of some: makes the results of what they have returned. Without it
   * a run returns the results.
   */
  merge?(parts: unknown[]): unknown;
  /** JSON Schema of such a part, by which those of other nodes are checked. */
  part?: object;
  /**
   * Of merged results that are complete: tells what came of it. Throws a TilewrightError where that is nothing. What it returns takes their
   * place; of a job over several nodes it runs on one of them, which has all that they have committed.
   */
  conclude?(results: unknown, context: ConcludeContext, inputs: unknown): unknown;
  /**
   * Of work that goes by cells: whether its runs wait for each other (`meet`). Then all go on at once, and the job fails where one is
   * lost.
   */
  usesBarrier?(inputs: unknown): boolean;
  /** Whether this node can go on with a job that another one took; without it every node can. */
  canTakeOver?(inputs: unknown): Promise<boolean>;
  /** Does the work. Throws a TilewrightError where the inputs cannot be used. The job adds `seconds` to results that are an object. */
  run(inputs: unknown, context: JobContext): Promise<unknown>;
}

/** Results of a job as they can be asked for. The job adds how long it took, with all its runs on all nodes and the time between them. */
export type Timed<Results> = Results & { seconds: number };

/** Counts of tiles, or of whatever the work goes through. */
export interface JobProgress {
  total: number;
  done: number;
  failed: number;
  skipped: number;
}

/** What the work of a job sees of it. */
export interface JobContext {
  readonly id: string;
  /** Aborted when the job is cancelled or the node stops; the work should then throw `signal.reason` soon. */
  readonly signal: AbortSignal;
  /** Whether tiles of this cell are for this run to work on; those of others are another's. */
  isMine(cell: { grid: GridName; geocode: string }): boolean;
  /**
   * Waits until every run of the job has said a word, and gives all words, in the same order everywhere. Every run says as many, one
   * after another.
   */
  allGather<T>(word: T): Promise<T[]>;
  /**
   * Counts of tiles so far, and the share of the work that is done, 0 to 1, where it goes by more than tiles; of what is skipped there is
   * no work. Nothing goes down: lower numbers are passed over, but where work is begun `anew`.
   */
  progress(now: Partial<JobProgress> & { share?: number; anew?: boolean }): void;
  /** One line for people: what the job is doing. */
  message(text: string): void;
  /** Adds a line to the job's log. It is on disk within a second; of very many lines the oldest go. */
  log(level: LogLevel, text: string): void;
  /** Says how to get what is done so far. It becomes the results where the job is cancelled or fails. */
  partial(results: () => unknown): void;
  /** A file in the folder of the job's results is whole: all nodes may have it. `object` is where it is already. */
  file(name: string, object?: string): Promise<void>;
}

/** What the end of a job's work sees of it. */
export type ConcludeContext = Pick<JobContext, 'id' | 'message' | 'log' | 'signal' | 'file'> & {
  /** When the job first ran, milliseconds since 1970. */
  readonly started: number;
};

/** The context of `runLocally` and of the distribution of a job over nodes. */
export type FullJobContext = JobContext & ConcludeContext;

/** The context of `prepare`. */
export type PrepareContext = Pick<JobContext, 'message' | 'log' | 'signal'>;

/** The results of all parts. Throws FailedWithResults where nothing came of the work. */
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

/** Does all of the work in this process. */
export async function runLocally(
  process: Process,
  inputs: unknown,
  context: FullJobContext,
): Promise<unknown> {
  const { merge } = process;
  const partial: JobContext['partial'] = (part) => context.partial(merge ? () => merge([part()]) : part);
  return concludeResults(process, [await process.run(inputs, { ...context, partial })], context, inputs);
}
