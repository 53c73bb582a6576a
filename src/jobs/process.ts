/** A process: work that runs as a job, the same from the command line and over HTTP (OGC API Processes, part 1). */
import type { LogLevel } from '../storage/index.js';

export interface Process {
  id: string;
  title: string;
  description: string;
  /** JSON Schema of the inputs. */
  inputs: Record<string, unknown>;
  /** What the results are, by their names: a title and a JSON Schema each. */
  outputs?: Record<string, { title: string; schema: Record<string, unknown> }>;
  /** Whether it is safe to run it again with the same inputs after it was cut off at any moment. */
  resumable?: boolean;
  /**
   * Of a run that ended: the inputs that do again only what failed in it; null where nothing did. A run that failed or was
   * cancelled as a whole is done again as a whole, without this.
   */
  retryInputs?(inputs: unknown, results: unknown): Promise<unknown>;
  /** Does the work. Throws a TilewrightError where the inputs cannot be used; returns what the design calls the results. */
  run(inputs: unknown, context: JobContext): Promise<unknown>;
}

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
  /**
   * Counts of tiles so far, and the share of the work that is done, 0 to 1. Nothing goes down: lower numbers are passed over.
   */
  progress(now: Partial<JobProgress> & { share?: number }): void;
  /** One line for people: what the job is doing. */
  message(text: string): void;
  /** Adds a line to the job's log. It is on disk within a second; of very many lines the oldest go. */
  log(level: LogLevel, text: string): void;
  /** Says how to get what is done so far. It becomes the results where the job is cancelled or fails. */
  partial(results: () => unknown): void;
}
