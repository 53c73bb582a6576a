import { JobError } from '../client/index.js';
import type { Timed } from '../jobs/index.js';

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
