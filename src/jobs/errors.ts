import { defineError, type TilewrightError } from '../errors.js';

export const jobNotFound = defineError(
  'TW_JOB_NOT_FOUND',
  404,
  'No job has this id, or the job ended more than a week ago. `GET /jobs` lists the jobs.',
  (id: string) => `there is no job ${JSON.stringify(id)}, or it ended more than a week ago`,
);

export const acceptanceUnknown = defineError(
  'TW_JOB_PERHAPS_ACCEPTED',
  503,
  'etcd did not answer in time when the job was accepted, or when a job that could not be written was withdrawn, so it is not known whether the job runs. Look at `tilewright jobs` once etcd answers, before the request is made again.',
  (id: string, detail: string) =>
    `it is not known whether job ${id} was accepted (${detail}); see "tilewright jobs" once etcd answers, before the request is made again`,
);

export const jobLimit = defineError(
  'TW_JOB_LIMIT',
  429,
  'Too many jobs are waiting. Try again when some have ended, or cancel some.',
  (limit: number) => `${limit} jobs are waiting already; try again when some have ended, or cancel some`,
);

export const badTaskInputs = defineError(
  'TW_JOB_INPUTS',
  400,
  'A node was asked to work on a job whose inputs do not fit the process as this node knows it. Run the same version on all nodes, then start the job again.',
  (process: string, detail: string) =>
    `the inputs do not fit the process ${process}: ${detail}; run the same version on all nodes, then start the job again`,
);

export const jobInterrupted = defineError(
  'TW_JOB_INTERRUPTED',
  503,
  'The process stopped while the job was waiting or running, and the job is none that a server takes up again, or its inputs are missing from the tile store. What it had committed is kept; start the job again for the rest.',
  (id: string, hasInputs = true) =>
    hasInputs
      ? `job ${id} was cut off, as the command or node that ran it ended; what it committed is kept: run the command again, or "tilewright jobs ${id} --retry"`
      : `job ${id} was cut off, and its inputs are missing from the tile store; what it committed is kept: run the command again`,
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

export const jobCrashedRepeatedly = defineError(
  'TW_JOB_CRASHES',
  500,
  'The node died several times in a row while this job ran, so that it is not taken up once more. Its log tells how far it came; give the node more memory, or leave the input out that it worked on.',
  (id: string, times: number) =>
    `the node died ${times} times in a row while job ${id} ran, so it is not taken up again; its log tells how far it came`,
);

export const jobNotReady = defineError(
  'TW_JOB_NOT_READY',
  404,
  'The job has no results yet. Ask for its status, or follow its events.',
  (id: string, status: string) => `job ${id} is ${status} and has no results yet`,
);

export const jobNotEnded = defineError(
  'TW_JOB_NOT_ENDED',
  409,
  'Only a job that has ended can be retried. Wait for its end, or cancel it.',
  (id: string, status: string) => `job ${id} is ${status}; it can be retried when it has ended`,
);

export const nothingFailed = defineError(
  'TW_JOB_NOTHING_FAILED',
  409,
  'The job has no failed inputs, so that there is nothing to retry.',
  (id: string) => `nothing of job ${id} failed, so there is nothing to retry`,
);

export const uploadDeleted = defineError(
  'TW_JOB_UPLOAD_GONE',
  409,
  'The file that was sent for the job is removed when the job ends, so that it cannot be retried. Send the file again.',
  (id: string) => `the file that was sent for job ${id} is no longer here; send it again`,
);

export const idempotencyKeyReused = defineError(
  'TW_JOB_KEY_REUSED',
  422,
  'The `Idempotency-Key` was used for another request within the last 24 hours. Take a new key for a new request.',
  (job: string) => `the Idempotency-Key belongs to another request, which started job ${job}; take a new key`,
);

export const jobTakenOver = defineError(
  'TW_JOB_TAKEN_OVER',
  409,
  'Another node of the cluster has taken the job over, because this one was away. Ask for it again.',
  (id: string) => `job ${id} is led by another node by now; ask for it again`,
);

export const noWorkerAvailable = defineError(
  'TW_JOB_NO_WORKER',
  503,
  'No node of the cluster could do a part of the job. What was done is kept; retry the job when the nodes are back.',
  (slots: number, detail: string) =>
    `no node could do the work of ${slots} slots: ${detail}; retry the job when the nodes are back`,
);

export const taskLost = defineError(
  'TW_JOB_RUN_LOST',
  503,
  'A node of the cluster was lost while it did its part of a job in which all nodes depend on each other. Retry the job when it runs again, or without it.',
  (node: string, detail: string) =>
    `node ${node} was lost, and in this job all nodes depend on each other: ${detail}; retry the job`,
);

export const leaderUnavailable = defineError(
  'TW_JOB_HOME_AWAY',
  503,
  'The node of the cluster that leads the job does not answer. Ask again: another node goes on with it when that one is away for longer than the grace period.',
  (id: string, node: string) =>
    `job ${id} is led by node ${node}, which does not answer; ask again, another node goes on with it if that one stays away`,
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
