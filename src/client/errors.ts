import { defineError, TilewrightError } from '../errors.js';

export const unreachable = defineError(
  'TW_CLIENT_UNREACHABLE',
  503,
  'No tilewright server answers at the address.',
  (url: string, reason: string) => `${url} does not answer (${reason}): is the server running there?`,
);

export const jobLost = defineError(
  'TW_CLIENT_JOB_LOST',
  503,
  'The server stopped answering while a command waited for a job. The job goes on: at another node of the cluster, or when the server is back. Follow it with `tilewright jobs ID --follow`.',
  (job: string, detail: string) =>
    `${detail} Job ${job} goes on when that server is back, or at another node of its cluster: tilewright jobs ${job} --follow --server ANOTHER`,
);

export const badAnswer = defineError(
  'TW_CLIENT_BAD_ANSWER',
  502,
  'The server answered with something that is not of this API.',
  (path: string, status: number) =>
    `${path} was answered with ${status} and no tilewright document: is it a tilewright server?`,
);

export const fileUnreadable = defineError(
  'TW_CLIENT_NO_FILE',
  400,
  'What is to be sent is no file that can be read. Folders are sent as one zip or tar file.',
  (path: string, reason: string) => `${path} cannot be sent: ${reason}`,
);

export const jobCancelledByUser = defineError(
  'TW_CLIENT_STOPPED',
  499,
  'The user stopped a command that waited for a job. The job was cancelled; what it had finished is kept.',
  (job: string) =>
    `stopped: job ${job} was cancelled, and what it had finished is kept; run the command again to have all`,
);

/** The error that ended a job, with the results that it has all the same: of an ingest, the failure of each scene. */
export class JobError extends TilewrightError {
  constructor(
    { code, message }: { code: string; message: string },
    readonly results: unknown,
  ) {
    super(code, 500, message);
  }
}
