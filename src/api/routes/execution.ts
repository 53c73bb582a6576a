/**
 * Requests that start a job, and the answers with its status and its results. With an idempotency key, a client that got no answer can
 * safely repeat the request.
 */
import { hash, randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  hasResults,
  type IdempotencyKey,
  type JobService,
  type Process,
  type ReportedJob,
  type StartedJob,
  type StartOptions,
} from '../../jobs/index.js';
import { isoTime } from '../../query/index.js';
import type { JobRecord } from '../../storage/index.js';
import { documented } from '../../utils/json-schema.js';
import { noCallbacks, outputNotFound } from '../errors.js';
import { baseUrl, link } from '../links.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, jsonResponse } from '../schemas/openapi.js';
import type { Services } from '../services.js';

/** The members of an OGC execute request other than `inputs`: the wanted outputs, and the form of the results. */
export interface ExecuteRequest {
  inputs?: unknown;
  outputs?: Record<string, object>;
  response?: 'document' | 'raw';
  subscriber?: unknown;
}

const JSON_TYPE = 'application/json';

/** No process has more outputs. */
const MAX_OUTPUTS = 100;

const output = closedObject({
  transmissionMode: { enum: ['value'] },
  format: closedObject({ mediaType: { enum: [JSON_TYPE] }, encoding: { enum: ['UTF-8'] } }),
});

/** JSON Schema of the body of an execute request. */
function executeBody({ inputs, outputs = {} }: Process) {
  return closedObject(
    {
      inputs,
      outputs: documented(
        {
          type: 'object',
          maxProperties: MAX_OUTPUTS,
          additionalProperties: output,
          description: 'The outputs in the results. Default: all.',
        },
        {
          additionalProperties: false,
          properties: Object.fromEntries(Object.keys(outputs).map((name) => [name, output])),
        },
      ),
      response: {
        enum: ['document', 'raw'],
        description: 'Form of the results: one document (the default), or the outputs themselves.',
      },
      subscriber: documented(
        { description: 'Refused: the server sends no callbacks. Follow /jobs/ID/events.' },
        { not: {} },
      ),
    },
    { required: inputs.required || inputs.anyOf ? ['inputs'] : [] },
  );
}

/** The form of the job's results; undefined for a document with all outputs. Throws TW_API_NO_CALLBACKS, TW_API_NO_OUTPUT. */
export function wantedResultOptions(
  process: Process,
  request: ExecuteRequest | undefined,
): JobRecord['resultOptions'] {
  const { outputs = {}, response, subscriber } = request ?? {};
  if (subscriber !== undefined) throw noCallbacks();
  const names = Object.keys(outputs);
  const declared = process.outputs ?? {};
  for (const name of names)
    if (!Object.hasOwn(declared, name)) throw outputNotFound(process.id, name, Object.keys(declared));
  const isRaw = response === 'raw';
  if (names.length === 0 && !isRaw) return undefined;
  return { ...(names.length > 0 && { outputs: names }), ...(isRaw && { raw: true }) };
}

/** The wanted members of the results. */
function selected(results: unknown, names: string[] | undefined): unknown {
  if (names === undefined || typeof results !== 'object' || results === null) return results;
  return Object.fromEntries(Object.entries(results).filter(([name]) => names.includes(name)));
}

/**
 * Sends the results of a job in the form that its request asked for. Raw results are the value of a single output, or a multipart answer
 * with a part for each output (OGC 18-062r2, 7.13.2).
 */
export function sendResults(
  reply: FastifyReply,
  results: unknown,
  options: JobRecord['resultOptions'],
): unknown {
  const document = selected(results, options?.outputs);
  if (!options?.raw || typeof document !== 'object' || document === null) return document;
  const values = document as Record<string, unknown>;
  const outputs = (options.outputs ?? Object.keys(values)).map(
    (name) => [name, Object.hasOwn(values, name) ? values[name] : null] as const,
  );
  const [first, ...others] = outputs;
  if (first && others.length === 0) return reply.type(JSON_TYPE).send(JSON.stringify(first[1]));
  const boundary = randomUUID();
  const parts = outputs.map(
    ([name, value]) =>
      `--${boundary}\r\ncontent-type: ${JSON_TYPE}\r\ncontent-id: <${encodeURIComponent(name)}>\r\n\r\n${JSON.stringify(value)}\r\n`,
  );
  const type = `multipart/related; type="${JSON_TYPE}"; boundary=${boundary}`;
  return reply.type(type).send(Buffer.from(`${parts.join('')}--${boundary}--\r\n`));
}

const RESULTS_REL = 'http://www.opengis.net/def/rel/ogc/1.0/results';

export const formatOptionalTime = (time: number | undefined) =>
  time === undefined ? undefined : isoTime(time);

export type StatusInfo = ReturnType<typeof statusInfo>;

/** The status document of a job: OGC statusInfo with counts of tiles. */
export function statusInfo(job: ReportedJob, base: string) {
  const share = job.share ?? doneFraction(job.tiles);
  return {
    jobID: job.id,
    processID: job.process,
    type: 'process',
    status: job.status,
    message: job.message,
    created: isoTime(job.created),
    started: formatOptionalTime(job.started),
    finished: formatOptionalTime(job.finished),
    updated: isoTime(job.updated),
    // A running job may find more work, so it never reports 100 %.
    progress: job.status === 'successful' ? 100 : Math.min(99, Math.floor(share * 100)),
    tiles: job.tiles,
    ...(job.status === 'running' && estimateEnd(job, share)),
    ...(job.stale && { stale: true }),
    ...(job.error && { error: job.error }),
    ...(job.retryOf && { retryOf: job.retryOf }),
    ...(job.retriedBy && { retriedBy: job.retriedBy }),
    links: linksOf(job, base),
  };
}

function linksOf(job: JobRecord, base: string) {
  const self = `${base}/jobs/${job.id}`;
  const related = (href: string, title: string) => ({ ...link('related', href), title });
  return [
    link('self', self),
    link('monitor', `${self}/events`, 'text/event-stream'),
    related(`${self}/logs`, 'log'),
    ...(hasResults(job) ? [link(RESULTS_REL, `${self}/results`)] : []),
    ...(job.retryOf ? [related(`${base}/jobs/${job.retryOf}`, 'the job that this one retries')] : []),
    ...(job.retriedBy ? [related(`${base}/jobs/${job.retriedBy}`, 'the job that retries this one')] : []),
  ];
}

/** Fraction of the work that is done, 0 to 1. Skipped tiles do not count, because they take almost no time. */
function doneFraction({ total, done, failed, skipped }: JobRecord['tiles']): number {
  const work = total - skipped;
  if (work > 0) return (done + failed) / work;
  return total > 0 ? 1 : 0;
}

/** Fraction of the work after which a remaining time is estimated. */
const MIN_SHARE_FOR_ESTIMATE = 0.1;

/** Rate and remaining time of a running job, from the start of its current run to its last update. */
function estimateEnd({ started = 0, resumed = started, updated, tiles }: JobRecord, share: number) {
  const seconds = (updated - resumed) / 1000;
  if (seconds <= 0 || share === 0) return {};
  return {
    tilesPerSecond: Number(((tiles.done + tiles.failed) / seconds).toPrecision(3)),
    ...(share >= MIN_SHARE_FOR_ESTIMATE && { secondsLeft: Math.ceil((seconds * (1 - share)) / share) }),
  };
}

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
  const client = request.isOwner ? undefined : request.ip;
  return jobs.startIdempotent(process, inputs, { ...options, request: key, client });
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
