/** Runs jobs and shows their progress. */
import { JobError, type RunHooks } from '../client/index.js';
import type { Timed } from '../jobs/index.js';
import { interruptSignal } from './cli-signals.js';
import { withProgressLine } from './output/index.js';

export type Hooks = Required<Pick<RunHooks, 'signal' | 'onProgress'>>;

/** Calls `run` with a signal that Ctrl-C aborts, and with a progress line that counts `unit`. */
export function runJob<T>(unit: string, run: (hooks: Hooks) => Promise<T>): Promise<T> {
  return withProgressLine(unit, ({ update }) => run({ signal: interruptSignal(), onProgress: update }));
}

interface JobOutcome<Results> {
  /** Absent if the job failed. */
  job?: string;
  results: Timed<Results>;
  error?: JobError;
}

/** Returns the results of a job, even if it failed. Throws if the job failed without results. */
export async function outcomeOf<Results>(
  run: Promise<{ job: string; results: Timed<Results> }>,
): Promise<JobOutcome<Results>> {
  try {
    return await run;
  } catch (error) {
    if (error instanceof JobError && error.results)
      return { results: error.results as Timed<Results>, error };
    throw error;
  }
}
