/** Errors of jobs. */
import { defineError, type TilewrightError } from '../errors.js';

export const jobNotFound = defineError(
  'TW_JOB_NOT_FOUND',
  404,
  'No job has this id, or the job ended more than a week ago. `GET /jobs` lists the jobs.',
  (id: string) => `no job has the id ${JSON.stringify(id)}, or it ended more than a week ago`,
);

export const acceptanceUnknown = defineError(
  'TW_JOB_PERHAPS_ACCEPTED',
  503,
  'etcd did not answer in time when the job was accepted, or when a job that could not be written was withdrawn, so it is unknown whether the job runs. Check `tilewright jobs` once etcd answers, before you repeat the request.',
  (id: string, detail: string) =>
    `it is unknown whether job ${id} was accepted (${detail}); check "tilewright jobs" once etcd answers, before you repeat the request`,
);

export const jobLimit = defineError(
  'TW_JOB_LIMIT',
  429,
  'Too many jobs are waiting. Try again when some have finished, or cancel some.',
  (limit: number) => `${limit} jobs are already waiting; try again when some have finished, or cancel some`,
);

export const badTaskInputs = defineError(
  'TW_JOB_INPUTS',
  400,
  'A node got a task whose inputs do not match the schema of its process. Run the same version on all nodes, then start the job again.',
  (process: string, detail: string) =>
    `the inputs do not match the process ${process}: ${detail}; run the same version on all nodes, then start the job again`,
);

export const jobInterrupted = defineError(
  'TW_JOB_INTERRUPTED',
  503,
  'The process stopped while the job was waiting or running, and the job cannot be resumed by a server, or its inputs are missing from the tile store. What it had committed is kept; start the job again for the rest.',
  (id: string, hasInputs = true) =>
    hasInputs
      ? `job ${id} was interrupted, because the command or node that ran it ended; what it committed is kept: run the command again, or "tilewright jobs ${id} --retry"`
      : `job ${id} was interrupted, and its inputs are missing from the tile store; what it committed is kept: run the command again`,
);

export const jobLost = defineError(
  'TW_JOB_LOST',
  503,
  'The coordination store lost the job before it ended, for example because it was restored from a backup. What the job had committed is kept; start it again for the rest.',
  (id: string) =>
    `the coordination store has lost job ${id}, as after a restore from a backup; what it committed is kept: run "tilewright jobs ${id} --retry" for the rest`,
);

export const jobFailed = defineError(
  'TW_JOB_FAILED',
  500,
  'A job ended with an error without a code; see the message.',
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
  'The node is stopping and does not start further jobs.',
  (process: string) => `the node is stopping and does not start a ${process} job`,
);

export const jobCrashedRepeatedly = defineError(
  'TW_JOB_CRASHES',
  500,
  'The node died several times in a row while this job ran, so the job is not resumed again. Its log shows how far it got; give the node more memory, or leave out the input that it worked on.',
  (id: string, times: number) =>
    `the node died ${times} times in a row while job ${id} ran, so the job is not resumed again; its log shows how far it got`,
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
  'Only a finished job can be retried. Wait for its end, or cancel it.',
  (id: string, status: string) => `job ${id} is ${status}; only a finished job can be retried`,
);

export const nothingFailed = defineError(
  'TW_JOB_NOTHING_FAILED',
  409,
  'The job has no failed inputs, so there is nothing to retry.',
  (id: string) => `job ${id} has no failed inputs, so there is nothing to retry`,
);

export const uploadDeleted = defineError(
  'TW_JOB_UPLOAD_GONE',
  409,
  'The uploaded file of the job was removed when the job ended, so the job cannot be retried. Upload the file again.',
  (id: string) => `the uploaded file of job ${id} has been removed; upload it again`,
);

export const idempotencyKeyReused = defineError(
  'TW_JOB_KEY_REUSED',
  422,
  'The `Idempotency-Key` was used for another request within the last 24 hours. Use a new key for a new request.',
  (job: string) => `the Idempotency-Key belongs to another request, which started job ${job}; use a new key`,
);

export const jobTakenOver = defineError(
  'TW_JOB_TAKEN_OVER',
  409,
  'Another node of the cluster has taken the job over, because this node was disconnected. Repeat the request.',
  (id: string) => `another node leads job ${id} now; repeat the request`,
);

export const noWorkerAvailable = defineError(
  'TW_JOB_NO_WORKER',
  503,
  'No node of the cluster could do a task of the job. Finished work is kept; retry the job when the nodes are running again.',
  (slots: number, detail: string) =>
    `no node could do the work of ${slots} slots: ${detail}; retry the job when the nodes are running again`,
);

export const taskLost = defineError(
  'TW_JOB_RUN_LOST',
  503,
  'A node of the cluster was lost during its task of a job in which all nodes depend on each other. Retry the job when the node is running again, or without it.',
  (node: string, detail: string) =>
    `node ${node} was lost, and in this job all nodes depend on each other: ${detail}; retry the job`,
);

export const leaderUnavailable = defineError(
  'TW_JOB_HOME_AWAY',
  503,
  'The node of the cluster that leads the job does not answer. Repeat the request: another node takes the job over if that node stays unreachable for longer than the grace period.',
  (id: string, node: string) =>
    `job ${id} is led by node ${node}, which does not answer; repeat the request; another node takes the job over if that node stays unreachable`,
);

/** Thrown by work that has failed but has results, so that readers of the job see the outcome of each part. */
export class FailedWithResults extends Error {
  constructor(
    readonly error: TilewrightError,
    readonly results: unknown,
  ) {
    super(error.message);
  }
}
