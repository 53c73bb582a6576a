/** Requests that start a job, once: a client that heard no answer may send the same request again. */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IdempotencyKey, JobService, Process, StartOptions } from '../../../jobs/index.js';
import type { JobRecord } from '../../../storage/index.js';
import { baseUrl } from '../../http/base-url.js';
import { jsonResponse } from '../../schemas/responses.js';
import type { Services } from '../../services.js';
import { statusInfo } from './status-info.js';

/** JSON Schema of the headers of such a request. */
export const idempotencyKeyHeader = {
  type: 'object',
  properties: {
    'idempotency-key': {
      type: 'string',
      pattern: '^[\\x21-\\x7e]{1,255}$',
      description:
        '1 to 255 visible ASCII characters. The same key with the same request gives the same job, for 24 hours.',
    },
  },
};

/** The answers to such a request. */
export const startResponses = {
  200: jsonResponse('Job', 'The job that the same request has started before'),
  201: jsonResponse('Job', 'The job that was started'),
};

/** The key that the client gave to the request; undefined where it gave none. */
export function idempotencyKey({ headers }: FastifyRequest): string | undefined {
  return headers['idempotency-key'] as string | undefined;
}

/** `asked` is what the request asks for: two requests with one key must not differ in it. */
function requestKey(request: FastifyRequest, process: Process, asked: unknown): IdempotencyKey | undefined {
  const key = idempotencyKey(request);
  if (key === undefined) return undefined;
  const digest = createHash('sha256')
    .update(JSON.stringify([process.id, asked]))
    .digest('hex');
  return { key, digest };
}

/**
 * Accepts a job, or finds the one that the same request has started before. Throws what `Jobs.startIdempotent` and the check of the process throw.
 */
export async function startJob(
  request: FastifyRequest,
  jobs: JobService,
  process: Process,
  inputs: unknown,
  { asked = inputs, ...options }: StartOptions & { asked?: unknown } = {},
): Promise<{ job: JobRecord; repeated: boolean }> {
  await process.check?.(inputs);
  const key = requestKey(request, process, options.resultOptions ? [asked, options.resultOptions] : asked);
  if (key) return jobs.startIdempotent(process, inputs, { ...options, request: key });
  return { job: await jobs.start(process, inputs, options), repeated: false };
}

/** The same for a job that has a file, in a scratch folder that goes where no job is started. */
export async function startWithFile(
  request: FastifyRequest,
  { jobs, storage }: Services,
  process: Process,
  inputs: unknown,
  { scratch, ...options }: StartOptions & { scratch: string; asked: unknown },
): Promise<{ job: JobRecord; repeated: boolean }> {
  let isTaken = false;
  try {
    const started = await startJob(request, jobs, process, inputs, { ...options, uploads: [scratch] });
    isTaken = !started.repeated;
    return started;
  } finally {
    if (!isTaken) await storage.scratch.remove(scratch);
  }
}

/** RFC 7240: every process is run asynchronously, so this preference is always honoured and others never are. */
const prefersAsync = ({ headers }: FastifyRequest) =>
  /(^|[,;\s])respond-async\s*($|[,;])/i.test(String(headers.prefer ?? ''));

/** 201 with the job's status and place; 200 where an earlier request has started it. */
export function sendJob(
  request: FastifyRequest,
  reply: FastifyReply,
  { job, repeated }: { job: JobRecord; repeated: boolean },
): FastifyReply {
  request.log.info({ job: job.id, repeated }, 'job accepted');
  const base = baseUrl(request);
  return reply
    .code(repeated ? 200 : 201)
    .header('location', `${base}/jobs/${job.id}`)
    .headers(prefersAsync(request) ? { 'preference-applied': 'respond-async' } : {})
    .send(statusInfo(job, base));
}
