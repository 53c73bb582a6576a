/** Requests that start a job. With an idempotency key, a client that got no answer can safely repeat the request. */
import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IdempotencyKey, JobService, Process, StartedJob, StartOptions } from '../../../jobs/index.js';
import type { Services } from '../../api-services.js';
import { baseUrl } from '../../http/index.js';
import { describeWithTag, jsonResponse } from '../../schemas/index.js';
import { executeBody } from './execute-process-request.js';
import { statusInfo } from './job-status-response.js';

/** JSON Schema of the headers of a request that starts a job. */
export const idempotencyKeyHeader = {
  type: 'object',
  properties: {
    'idempotency-key': {
      type: 'string',
      pattern: '^[\\x21-\\x7e]{1,255}$',
      description:
        '1 to 255 visible ASCII characters. The same key with the same request returns the same job, for 24 hours.',
    },
  },
};

/** The answers to a request that starts a job. */
export const startResponses = {
  200: jsonResponse('Job', 'The job that an earlier identical request started'),
  201: jsonResponse('Job', 'The job that was started'),
};

/** Options of the route that executes a process. */
export const executionRoute = (process: Process) => ({
  config: { write: true },
  ...describeWithTag('processes')(`Starts a job: ${process.title.toLowerCase()}`, startResponses, {
    headers: idempotencyKeyHeader,
    body: executeBody(process),
  }),
});

/** The idempotency key of the request; undefined if it has none. */
export function idempotencyKey({ headers }: FastifyRequest): string | undefined {
  return headers['idempotency-key'] as string | undefined;
}

/** `asked` is the content of the request, which must be the same for two requests with one key. */
function requestKey(request: FastifyRequest, process: Process, asked: unknown): IdempotencyKey | undefined {
  const key = idempotencyKey(request);
  if (key === undefined) return undefined;
  return { key, digest: hash('sha256', JSON.stringify([process.id, asked])) };
}

/**
 * Starts a job, or returns the job that an earlier identical request started. Throws the errors of `JobService.startIdempotent` and of
 * `Process.check`.
 */
export async function startJob(
  request: FastifyRequest,
  jobs: JobService,
  process: Process,
  inputs: unknown,
  { asked = inputs, ...options }: StartOptions & { asked?: unknown } = {},
): Promise<StartedJob> {
  await process.check?.(inputs);
  const key = requestKey(request, process, options.resultOptions ? [asked, options.resultOptions] : asked);
  return jobs.startIdempotent(process, inputs, { ...options, request: key });
}

/** Works like `startJob` for a job with a file in a scratch folder. Removes the folder if no job is started. */
export async function startWithFile(
  request: FastifyRequest,
  { jobs, storage }: Services,
  process: Process,
  inputs: unknown,
  { scratch, ...options }: StartOptions & { scratch: string; asked: unknown },
): Promise<StartedJob> {
  let isTaken = false;
  try {
    const started = await startJob(request, jobs, process, inputs, { ...options, uploads: [scratch] });
    isTaken = !started.repeated;
    return started;
  } finally {
    if (!isTaken) await storage.scratch.remove(scratch);
  }
}

/** RFC 7240: all processes run asynchronously, so this is the only preference that is honoured. */
const prefersAsync = ({ headers }: FastifyRequest) =>
  /(^|[,;\s])respond-async\s*($|[,;])/i.test(String(headers.prefer ?? ''));

/** Sends the job's status and location, with 201; with 200 if an earlier request started the job. */
export function sendJob(
  request: FastifyRequest,
  reply: FastifyReply,
  { job, repeated }: StartedJob,
): FastifyReply {
  request.log.info({ job: job.id, repeated }, 'job accepted');
  const base = baseUrl(request);
  return reply
    .code(repeated ? 200 : 201)
    .header('location', `${base}/jobs/${job.id}`)
    .headers(prefersAsync(request) ? { 'preference-applied': 'respond-async' } : {})
    .send(statusInfo(job, base));
}
