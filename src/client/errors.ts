/** Errors of the client. */
import { defineError, TilewrightError } from '../errors.js';

export const unreachable = defineError(
  'TW_CLIENT_UNREACHABLE',
  503,
  'No tilewright server answers at the address.',
  (url: string, reason: string) => `${url} does not answer (${reason}): is the server running there?`,
);

export const answerBroken = defineError(
  'TW_CLIENT_BROKEN_ANSWER',
  503,
  'The connection to the server ended before its answer was complete. Repeat the command. A server ends answers of which it can deliver less than 64 kB a minute, such as those of a paused program.',
  (path: string, reason: string) =>
    `the answer to ${path} ended before it was complete (${reason}); repeat the command. A server ends answers that are read too slowly, such as by a paused program`,
);

export const jobLost = defineError(
  'TW_CLIENT_JOB_LOST',
  503,
  'The server stopped answering while a command waited for a job. The job continues on another node of the cluster, or when the server is back. Follow it with `tilewright jobs ID --follow`.',
  (job: string, detail: string) =>
    `${detail} Job ${job} continues when the server is back, or on another node of its cluster: tilewright jobs ${job} --follow --server ANOTHER`,
);

export const badAnswer = defineError(
  'TW_CLIENT_BAD_ANSWER',
  502,
  'The answer of the server does not belong to this API.',
  (path: string, status: number) =>
    `the answer to ${path} has the status ${status} and is not a tilewright document: is it a tilewright server?`,
);

export const fileUnreadable = defineError(
  'TW_CLIENT_NO_FILE',
  400,
  'The path to upload is not a readable file. Put a folder into a zip or tar file first.',
  (path: string, reason: string) => `${path} cannot be sent: ${reason}`,
);

export const jobCancelledByUser = defineError(
  'TW_CLIENT_STOPPED',
  499,
  'The user stopped a command that waited for a job. The job was cancelled; its finished part is kept.',
  (job: string) =>
    `stopped: job ${job} was cancelled, and its finished part is kept; run the command again to complete it`,
);

/** The error of a failed job, with its partial results, such as the failures of the scenes of an ingest. */
export class JobError extends TilewrightError {
  constructor(
    { code, message }: { code: string; message: string },
    readonly results: unknown,
  ) {
    super(code, 500, message);
  }
}
