import { JobError } from '../client/index.js';

export interface Outcome<Results> {
  /** Absent where the job failed. */
  job?: string;
  results: Results;
  error?: JobError;
}

/** What a job has made, also where it failed with results. Throws where there are none. */
export async function orResults<Results>(
  run: Promise<{ job: string; results: Results }>,
): Promise<Outcome<Results>> {
  try {
    return await run;
  } catch (error) {
    if (error instanceof JobError && error.results) return { results: error.results as Results, error };
    throw error;
  }
}
