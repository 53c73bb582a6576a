/** Jobs: their list, status, results, logs and events; cancel and retry. A request for a job of another node is forwarded to it. */
import { type IncomingMessage, type OutgoingHttpHeaders, request as open } from 'node:http';
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { limitConnectTime, type Peer, type Signatures } from '../../dht/index.js';
import { errorCatalogue, TilewrightError } from '../../errors.js';
import { PAGE_POLICY } from '../../html/index.js';
import {
  type EventOptions,
  hasEnded,
  hasResults,
  type JobEvent,
  type JobService,
  jobEvents,
  jobNotFound,
  jobNotReady,
  leaderUnavailable,
  retryJob,
} from '../../jobs/index.js';
import { datetimeSchema, parseDatetime } from '../../query/index.js';
import type { JobRecord } from '../../storage/index.js';
import { listOf } from '../../utils/json-schema.js';
import { noBody, onDisconnect } from '../answers.js';
import { badPagingToken, processNotFound, resourceNotFound, tooManyListeners } from '../errors.js';
import { baseUrl, link, pageLinks, parseLimit, requestPath } from '../links.js';
import { FORWARDED_BASE_URL_HEADER } from '../plugins/auth.js';
import { ClientLimit } from '../plugins/limits.js';
import { FORMAT_QUERY } from '../plugins/validation.js';
import { closedObject } from '../schemas/builders.js';
import { JOB_STATES } from '../schemas/jobs.js';
import { describeWithTag, emptyResponse, fileResponse, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup, Services } from '../services.js';
import { formatOptionalTime, sendJob, sendResults, startResponses, statusInfo } from './execution.js';

/** Headers that are forwarded. */
const FORWARDED_REQUEST_HEADERS = ['accept', 'last-event-id', 'x-request-id'];
const FORWARDED_RESPONSE_HEADERS = [
  'content-type',
  'content-length',
  'cache-control',
  'location',
  'retry-after',
  'x-accel-buffering',
  'content-security-policy',
  'x-content-type-options',
];
const LEADER_TIMEOUT_MS = 1000;
/** A stopped process still accepts connections. A cancelled job may take long to end, and is answered after that. */
const LEADER_ANSWER_TIMEOUT_MS = 5000;
const LEADER_CANCEL_TIMEOUT_MS = 60_000;

interface ForwardOptions {
  /** Forwards requests for an ended job too, if its former leader runs. */
  includeEnded?: boolean;
  /** If the leader cannot be reached, this node answers with its own record. */
  fallBackToLocal?: boolean;
}

/** A `preHandler` hook of routes with the parameter `id`: forwards requests for a job to the node that leads it. */
function forwardToLeader(
  { jobs, cluster }: Services,
  { includeEnded = false, fallBackToLocal = false }: ForwardOptions = {},
) {
  return async (
    request: FastifyRequest<{ Params: { id: string } }>,
    reply: FastifyReply,
  ): Promise<FastifyReply | undefined> => {
    if (!cluster || request.forwardedBaseUrl !== undefined) return undefined;
    const peer = await jobs.leaderOf(request.params.id, includeEnded).catch((error) => {
      // The route answers what this node knows, or the same error.
      if (fallBackToLocal && error instanceof TilewrightError && error.status === 503) return undefined;
      throw error;
    });
    if (!peer) return undefined;
    let answer: IncomingMessage;
    try {
      answer = await forwardRequest(peer, request.params.id, cluster.signatures, request, reply);
    } catch (error) {
      if (fallBackToLocal) return undefined;
      throw error;
    }
    // This node must not report the end of a job before its own searches find the job's tiles.
    await cluster.cluster.replica.catchUp().catch((error) => {
      answer.destroy();
      throw error;
    });
    for (const name of FORWARDED_RESPONSE_HEADERS) {
      const value = answer.headers[name];
      if (value !== undefined) reply.header(name, value);
    }
    return reply.code(answer.statusCode ?? 502).send(answer);
  };
}

/** Throws TW_JOB_HOME_AWAY. */
function forwardRequest(
  { id, url }: Peer,
  job: string,
  signatures: Signatures,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<IncomingMessage> {
  const { method } = request;
  const path = requestPath(request);
  const headers: OutgoingHttpHeaders = {
    ...signatures.headers(id, { method, path }),
    [FORWARDED_BASE_URL_HEADER]: baseUrl(request),
  };
  for (const name of FORWARDED_REQUEST_HEADERS) {
    const value = request.headers[name];
    if (value !== undefined) headers[name] = value;
  }
  return new Promise((resolve, reject) => {
    const sent = open(new URL(path, url), { method, agent: false, headers });
    limitConnectTime(sent, LEADER_TIMEOUT_MS);
    const timeoutMs = method === 'DELETE' ? LEADER_CANCEL_TIMEOUT_MS : LEADER_ANSWER_TIMEOUT_MS;
    const silent = new Error(`no answer within ${timeoutMs} ms`);
    const timer = setTimeout(() => sent.destroy(silent), timeoutMs);
    onDisconnect(reply, () => sent.destroy());
    sent.once('response', (answer) => {
      clearTimeout(timer);
      resolve(answer);
    });
    // After the answer has begun, errors reach its reader.
    sent.on('error', (error) => {
      clearTimeout(timer);
      reject(leaderUnavailable.because(error, job, id));
    });
    sent.end();
  });
}

/** How long clients wait before they reconnect. */
const EVENT_RETRY_MS = 2000;

/** The text of the server-sent events (WHATWG HTML, 9.2) of a job, event by event. */
async function* eventStream(
  jobs: JobService,
  id: string,
  options: EventOptions,
  base: string,
): AsyncGenerator<string> {
  yield `retry: ${EVENT_RETRY_MS}\n\n`;
  for await (const event of jobEvents(jobs, id, options)) yield eventText(id, event, base);
}

function eventText(jobID: string, event: JobEvent, base: string): string {
  switch (event.kind) {
    case 'idle':
      return ': still here\n\n';
    case 'progress':
      return eventMessage('progress', statusInfo(event.job, base));
    case 'log': {
      const { time, level, text } = event.line;
      return eventMessage('log', { time: formatOptionalTime(time), level, text }, event.seq);
    }
    case 'state': {
      const { status, time, job, seq } = event;
      const data = job ? statusInfo(job, base) : { jobID, type: 'process', status };
      return eventMessage('state', { time: formatOptionalTime(time), ...data }, seq);
    }
  }
}

/** JSON.stringify writes no line breaks, so one `data` line is enough. */
function eventMessage(event: string, data: unknown, id?: number): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/** Filters of the list of jobs, with the parameters of OGC API Processes. */
interface JobQuery {
  type?: string[];
  processID?: string[];
  status?: string[];
  /** Interval that contains the time of creation. */
  datetime?: string;
  /** Run time of the job so far or in total, seconds. */
  minDuration?: number;
  maxDuration?: number;
  limit?: number;
  /** The list begins after the job of this id. */
  token?: string;
}

const durationSchema = { type: 'number', minimum: 0 };

const jobQuery = {
  type: listOf({ enum: ['process'] }),
  processID: listOf({ type: 'string' }),
  status: listOf({ enum: JOB_STATES }),
  datetime: datetimeSchema(),
  minDuration: durationSchema,
  maxDuration: durationSchema,
  limit: { type: 'integer', minimum: 1 },
  token: { type: 'string', maxLength: 40 },
};

/** Splits values such as "running,accepted" into the lists that the schema requires. */
function splitListParams(query: JobQuery): void {
  for (const name of ['type', 'processID', 'status'] as const) {
    const given: unknown = query[name];
    if (typeof given === 'string') query[name] = given.split(',');
  }
}

/** Throws TW_QUERY_DATETIME. */
function jobFilter(query: JobQuery): (job: JobRecord) => boolean {
  const { processID, status, datetime, minDuration = 0, maxDuration = Infinity } = query;
  const { start = -Infinity, end = Infinity } = datetime === undefined ? {} : parseDatetime(datetime);
  const anyDuration = query.minDuration === undefined && query.maxDuration === undefined;
  const runsFor = ({ started, finished = Date.now() }: JobRecord) => {
    if (started === undefined) return false;
    const ran = (finished - started) / 1000;
    return ran >= minDuration && ran <= maxDuration;
  };
  return (job) =>
    (!processID || processID.includes(job.process)) &&
    (!status || status.includes(job.status)) &&
    job.created >= start &&
    job.created <= end &&
    (anyDuration || runsFor(job));
}

const DEFAULT_JOBS = 100;
const MAX_JOBS = 1000;
const DEFAULT_LINES = 1000;
const MAX_LINES = 10_000;
/** Open event streams. */
const MAX_EVENT_STREAMS = 256;
const MAX_EVENT_STREAMS_OF_CLIENT = 64;

interface Id {
  Params: { id: string };
}

const describe = describeWithTag('processes');

export const jobRoutes: RouteGroup = async (server, { services }) => {
  const { jobs, processes } = services;
  const status = { 200: jsonResponse('Job', 'The job as it is now') };
  const number = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

  server.get<{ Querystring: JobQuery }>(
    '/jobs',
    {
      ...describe(
        'Jobs, newest first',
        { 200: jsonResponse('Jobs', 'A page of jobs') },
        { querystring: closedObject(jobQuery) },
      ),
      preValidation: async (request) => splitListParams(request.query),
    },
    async (request) => {
      const { token } = request.query;
      const limit = parseLimit({ limit: request.query.limit ?? DEFAULT_JOBS }, MAX_JOBS);
      if (token !== undefined) await requireJob(jobs, token);
      const found = await jobs.list(limit + 1, token, jobFilter(request.query));
      const page = found.slice(0, limit);
      const base = baseUrl(request);
      return {
        jobs: page.map((job) => statusInfo(job, base)),
        links: pageLinks(request, page, found.length > limit),
      };
    },
  );

  server.get<Id>(
    '/jobs/:id',
    {
      preHandler: forwardToLeader(services, { fallBackToLocal: true }),
      ...describe('Status of a job; for a failed job also its partial results', status),
    },
    async (request) => {
      const job = await jobs.status(request.params.id);
      const { status, results } = job;
      return { ...statusInfo(job, baseUrl(request)), ...(status === 'failed' && { results }) };
    },
  );

  const document = jsonResponse('Results', 'The outputs of the process');
  const parts = fileResponse('Several raw outputs', 'multipart/related');
  server.get<Id>(
    '/jobs/:id/results',
    {
      preHandler: forwardToLeader(services),
      ...describe(
        'Results of a job; for a cancelled job, the results until it was cancelled',
        { 200: { ...document, content: { ...document.content, ...parts.content } } },
        {
          // The hook for `f` adds it only to operations that always answer JSON.
          querystring: { ...FORMAT_QUERY, additionalProperties: false },
        },
      ),
    },
    async (request, reply) => {
      const job = await jobs.get(request.params.id);
      // Handlers do not see `f` in the query.
      const asDocument = /[?&]f=/.test(request.url);
      return sendResults(
        reply,
        resultsOf(job),
        asDocument ? { ...job.resultOptions, raw: false } : job.resultOptions,
      );
    },
  );

  server.get<{ Params: { id: string; name: string } }>(
    '/jobs/:id/results/files/:name',
    {
      preHandler: forwardToLeader(services),
      ...describe('A result file of a job; kept for a week', {
        200: fileResponse('The file', 'image/tiff', 'application/json', 'text/html', DEFAULT_FILE_TYPE),
      }),
    },
    async (request, reply) => {
      const { id, name } = request.params;
      const { status } = await jobs.get(id);
      if (status !== 'successful') throw jobNotReady(id, status);
      const file = await jobs.file(id, name);
      if (!file) throw resourceNotFound(`file ${name} of job ${id}`);
      const type = FILE_TYPES[extname(name)] ?? DEFAULT_FILE_TYPE;
      // A report contains names from foreign data, so browsers must not run scripts in it, nor in any other file.
      if (type === HTML_TYPE) reply.header('content-security-policy', `${PAGE_POLICY}; sandbox`);
      return reply
        .header('x-content-type-options', 'nosniff')
        .header('content-length', file.bytes)
        .type(type)
        .send(request.method === 'HEAD' ? noBody() : await file.open());
    },
  );

  server.get<Id & { Querystring: { after?: number; limit?: number } }>(
    '/jobs/:id/logs',
    {
      preHandler: forwardToLeader(services),
      ...describe(
        'Log of a job, from the line after `after`',
        { 200: jsonResponse('JobLog', 'Lines of the log') },
        { querystring: closedObject({ after: number, limit: { type: 'integer', minimum: 1 } }) },
      ),
    },
    async (request) => {
      const { id } = request.params;
      const { after = 0 } = request.query;
      const limit = parseLimit({ limit: request.query.limit ?? DEFAULT_LINES }, MAX_LINES);
      // The job is read before its log, because an ended job gets no more lines.
      const job = await jobs.get(id);
      const lines = await jobs.log(id, { after, limit });
      const linkTo = (rel: string, from: number) =>
        link(rel, `${baseUrl(request)}/jobs/${id}/logs?after=${from}&limit=${limit}`);
      const hasMore = lines.length === limit || !hasEnded(job);
      return {
        lines: lines.map((line) => ({ ...line, time: formatOptionalTime(line.time) })),
        links: [linkTo('self', after), ...(hasMore ? [linkTo('next', lines.at(-1)?.seq ?? after)] : [])],
      };
    },
  );

  const streams = new ClientLimit(MAX_EVENT_STREAMS, MAX_EVENT_STREAMS_OF_CLIENT);
  server.get<Id & { Querystring: { after?: number } }>(
    '/jobs/:id/events',
    {
      preHandler: forwardToLeader(services),
      // A HEAD request would keep an endless stream open.
      exposeHeadRoute: false,
      ...describe(
        'States, progress and log of a job as server-sent events',
        {
          200: jsonResponse('JobEvent', 'The events', 'text/event-stream'),
          204: emptyResponse('There are no more events'),
        },
        {
          querystring: closedObject({ after: number }),
          headers: { type: 'object', properties: { 'last-event-id': { type: 'string' } } },
        },
      ),
    },
    async (request, reply) => {
      const { id } = request.params;
      const last = Number(request.headers['last-event-id'] || Number.NaN);
      const known = Number.isSafeInteger(last) && last >= 0;
      // A browser reconnects after the end until it gets a 204.
      const job = await jobs.get(id);
      if (known && hasEnded(job) && last >= (job.lines ?? 0)) return reply.code(204).send();
      const release = streams.take(request.ip);
      if (!release) throw tooManyListeners();
      const abort = new AbortController();
      onDisconnect(reply, () => {
        release();
        abort.abort();
      });
      const after = known ? last : request.query.after;
      const text = eventStream(jobs, id, { after, signal: abort.signal }, baseUrl(request));
      return (
        reply
          .header('content-type', 'text/event-stream; charset=utf-8')
          .header('cache-control', 'no-store')
          .header('x-accel-buffering', 'no')
          // A server that stops need not wait for the client to close the connection.
          .header('connection', 'close')
          .send(Readable.from(text, { highWaterMark: 1 }))
      );
    },
  );

  server.delete<Id>(
    '/jobs/:id',
    {
      preHandler: forwardToLeader(services),
      config: { write: true },
      ...describe('Cancels a job', status),
    },
    async (request) => statusInfo(await jobs.cancel(request.params.id), baseUrl(request)),
  );

  server.post<Id>(
    '/jobs/:id/retry',
    {
      preHandler: forwardToLeader(services, { includeEnded: true }),
      config: { write: true },
      ...describe('Starts a job that repeats the failed part of an ended job', startResponses),
    },
    async (request, reply) => {
      const { id, process } = await jobs.get(request.params.id);
      const found = processes.get(process);
      if (!found) throw processNotFound(process);
      // Other users must not make the node read files that only its owner may read.
      const isFenced = process === 'ingest' && !request.isOwner;
      const restrict = (given: unknown) => (isFenced ? { ...(given as object), fenced: true } : given);
      return sendJob(request, reply, { job: await retryJob(jobs, id, found, restrict), repeated: false });
    },
  );
};

/** Throws TW_API_TOKEN unless the token is the id of a job. */
async function requireJob(jobs: JobService, token: string): Promise<void> {
  await jobs.get(token).catch((error) => {
    throw jobNotFound.is(error) ? badPagingToken.because(error, token) : error;
  });
}

const DEFAULT_FILE_TYPE = 'application/octet-stream';
const HTML_TYPE = 'text/html; charset=utf-8';
const FILE_TYPES: Record<string, string> = {
  '.tif': 'image/tiff',
  '.json': 'application/json',
  '.html': HTML_TYPE,
};

/** The stored error of a job with the HTTP status of its code, so that a client error stays a client error. */
function errorOf({ code, message }: { code: string; message: string }): TilewrightError {
  const status = errorCatalogue().find((known) => known.code === code)?.status ?? 500;
  return new TilewrightError(code, status, message);
}

function resultsOf(job: JobRecord): unknown {
  if (hasResults(job)) return job.results;
  if (job.error) throw errorOf(job.error);
  throw jobNotReady(job.id, job.status);
}
