/** Requests that start a job, once: a client that heard no answer may send the same request again. */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Jobs, Process, RequestKey, StartOptions } from '../../jobs/index.js';
import type { JobRecord } from '../../storage/index.js';
import { baseUrl } from '../base-url.js';
import { badRequest } from '../errors.js';
import { statusInfo } from './status.js';

/** The key that the client gave to the request; undefined where it gave none. Throws TW_API_BAD_REQUEST. */
export function idempotencyKey({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw badRequest('the Idempotency-Key must be 1 to 255 visible characters of ASCII');
}

/** `asked` is what the request asks for: two requests with one key must not differ in it. */
function requestKey(request: FastifyRequest, process: Process, asked: unknown): RequestKey | undefined {
  const key = idempotencyKey(request);
  if (key === undefined) return undefined;
  const digest = createHash('sha256')
    .update(JSON.stringify([process.id, asked]))
    .digest('hex');
  return { key, digest };
}

/**
 * Accepts a job, or finds the one that the same request has started before. Throws what `Jobs.startOnce` throws.
 */
export async function startJob(
  request: FastifyRequest,
  jobs: Jobs,
  process: Process,
  inputs: unknown,
  { asked = inputs, ...options }: StartOptions & { asked?: unknown } = {},
): Promise<{ job: JobRecord; repeated: boolean }> {
  const key = requestKey(request, process, asked);
  if (key) return jobs.startOnce(process, inputs, { ...options, request: key });
  return { job: await jobs.start(process, inputs, options), repeated: false };
}

/** 201 with the job's status and place; 200 where an earlier request has started it. */
export function answerJob(
  request: FastifyRequest,
  reply: FastifyReply,
  { job, repeated }: { job: JobRecord; repeated: boolean },
): FastifyReply {
  const base = baseUrl(request);
  return reply
    .code(repeated ? 200 : 201)
    .header('location', `${base}/jobs/${job.id}`)
    .send(statusInfo(job, base));
}
