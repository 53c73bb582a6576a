import { JobError } from '../client/index.js';
import type { Timed } from '../jobs/index.js';

export interface JobOutcome<Results> {
  /** Absent where the job failed. */
  job?: string;
  results: Timed<Results>;
  error?: JobError;
}

/** What a job has made, also where it failed with results. Throws where there are none. */
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
