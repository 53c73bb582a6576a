import { defineError, type TilewrightError } from '../errors.js';

export const jobNotFound = defineError(
  'TW_JOB_NOT_FOUND',
  404,
  'There is no job of this id. `GET /jobs` lists those that exist.',
  (id: string) => `there is no job ${JSON.stringify(id)}`,
);

export const jobLimit = defineError(
  'TW_JOB_LIMIT',
  429,
  'Too many jobs are waiting. Try again when some have ended, or cancel some.',
  (limit: number) => `${limit} jobs are waiting already; try again when some have ended, or cancel some`,
);

export const jobInterrupted = defineError(
  'TW_JOB_INTERRUPTED',
  503,
  'The node stopped while the job was waiting or running. What it had committed is kept; start the job again for the rest.',
  (id: string) =>
    `job ${id} was interrupted because the node stopped; start it again, what it committed is kept`,
);

export const jobFailed = defineError(
  'TW_JOB_FAILED',
  500,
  'A job ended with an error that has no code of its own; its message says which.',
  (detail: string) => detail,
);

export const jobDismissed = defineError(
  'TW_JOB_DISMISSED',
  409,
  'The job was cancelled. What it had committed before is kept.',
  (id: string) => `job ${id} was cancelled`,
);

export const jobsClosed = defineError(
  'TW_JOB_CLOSED',
  503,
  'The node is stopping and starts no further job.',
  (process: string) => `no ${process} job is started any more because the node is stopping`,
);

/** Thrown by work that has failed, but has results all the same: who reads the job sees what became of each part. */
export class FailedWithResults extends Error {
  constructor(
    readonly error: TilewrightError,
    readonly results: unknown,
  ) {
    super(error.message);
  }
}
