/** Jobs: their list, status, results, logs and events; cancel and retry. */
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { errorCatalogue, TilewrightError } from '../../../errors.js';
import { PAGE_POLICY } from '../../../html/index.js';
import { hasEnded, type JobService, jobNotFound, jobNotReady } from '../../../jobs/index.js';
import type { JobRecord } from '../../../storage/index.js';
import { badPagingToken, processNotFound, resourceNotFound, tooManyListeners } from '../../errors.js';
import { baseUrl, requestUrl } from '../../http/base-url.js';
import { onDisconnect } from '../../http/on-disconnect.js';
import { parseLimit } from '../../http/paging.js';
import { FORMAT_QUERY } from '../../plugins/format-parameter.js';
import { closedObject } from '../../schemas/builders.js';
import { emptyResponse, fileResponse, jsonResponse } from '../../schemas/responses.js';
import type { Services } from '../../services.js';
import { sendResults } from './execute-request.js';
import { forwardToLeader } from './forward-to-leader.js';
import { type JobQuery, jobFilter, jobQuery, splitListParams } from './job-filter.js';
import { eventStream } from './server-sent-events.js';
import { sendJob, startResponses } from './start-job.js';
import { formatOptionalTime, hasResults, statusInfo } from './status-info.js';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
const DEFAULT_LINES = 1000;
const MAX_LINES = 10_000;
/** Event streams that are open at the same time. */
const MAX_EVENT_STREAMS = 256;

interface Id {
  Params: { id: string };
}

export async function jobRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { jobs, processes } = services;
  const tags = ['processes'];
  const status = { 200: jsonResponse('Job', 'The job as it is now') };
  const params = { type: 'object', properties: { id: { type: 'string' } } };
  const number = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

  server.get<{ Querystring: JobQuery }>(
    '/jobs',
    {
      schema: {
        summary: 'Jobs, newest first',
        tags,
        response: { 200: jsonResponse('Jobs', 'A page of jobs') },
        querystring: closedObject(jobQuery),
      },
      preValidation: async (request) => splitListParams(request.query),
    },
    async (request) => {
      const { token } = request.query;
      const limit = parseLimit({ limit: request.query.limit ?? DEFAULT_LIMIT }, MAX_LIMIT);
      if (token !== undefined) await requireJob(jobs, token);
      const found = await jobs.list(limit + 1, token, jobFilter(request.query));
      const page = found.slice(0, limit);
      const base = baseUrl(request);
      const link = (rel: string, href: string) => ({ rel, type: 'application/json', href });
      const self = requestUrl(request);
      const next = new URL(self);
      next.searchParams.set('token', page.at(-1)?.id ?? '');
      return {
        jobs: page.map((job) => statusInfo(job, base)),
        links: [link('self', self.href), ...(found.length > limit ? [link('next', next.href)] : [])],
      };
    },
  );

  server.get<Id>(
    '/jobs/:id',
    {
      preHandler: forwardToLeader(services, { fallBackToLocal: true }),
      schema: {
        summary: 'Status of a job; of a failed one also the results, where it has some',
        tags,
        response: status,
        params,
      },
    },
    async (request) => {
      const job = await jobs.get(request.params.id);
      const { status, results } = job;
      return { ...statusInfo(job, baseUrl(request)), ...(status === 'failed' && { results }) };
    },
  );

  const document = jsonResponse('Results', 'What the process says of its outputs');
  const parts = fileResponse('Several raw outputs', 'multipart/related');
  server.get<Id>(
    '/jobs/:id/results',
    {
      preHandler: forwardToLeader(services),
      schema: {
        summary: 'Results of a job; of a cancelled one what it had made',
        tags,
        params,
        // The hook for `f` adds it to operations that answer JSON alone.
        querystring: { ...FORMAT_QUERY, additionalProperties: false },
        response: { 200: { ...document, content: { ...document.content, ...parts.content } } },
      },
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
      schema: {
        summary: 'A file that a job answered with; kept for a week',
        tags,
        response: {
          200: fileResponse('The file', 'image/tiff', 'application/json', 'text/html', DEFAULT_FILE_TYPE),
        },
      },
    },
    async (request, reply) => {
      const { id, name } = request.params;
      const { status } = await jobs.get(id);
      if (status !== 'successful') throw jobNotReady(id, status);
      const file = await jobs.file(id, name);
      if (!file) throw resourceNotFound(`file ${name} of job ${id}`);
      const type = FILE_TYPES[extname(name)] ?? DEFAULT_FILE_TYPE;
      // A report contains names from data of others: browsers run no script of it, and of no other file either.
      if (type === HTML) reply.header('content-security-policy', `${PAGE_POLICY}; sandbox`);
      return reply
        .header('x-content-type-options', 'nosniff')
        .header('content-length', file.bytes)
        .type(type)
        .send(await file.open());
    },
  );

  server.get<Id & { Querystring: { after?: number; limit?: number } }>(
    '/jobs/:id/logs',
    {
      preHandler: forwardToLeader(services),
      schema: {
        summary: 'Log of a job, from after a line on',
        tags,
        response: { 200: jsonResponse('JobLog', 'Lines of the log') },
        params,
        querystring: closedObject({ after: number, limit: { type: 'integer', minimum: 1 } }),
      },
    },
    async (request) => {
      const { id } = request.params;
      const { after = 0 } = request.query;
      const limit = parseLimit({ limit: request.query.limit ?? DEFAULT_LINES }, MAX_LINES);
      // Before its log: an ended job gets no further lines.
      const job = await jobs.get(id);
      const lines = await jobs.log(id, { after, limit });
      const link = (rel: string, from: number) => ({
        rel,
        type: 'application/json',
        href: `${baseUrl(request)}/jobs/${id}/logs?after=${from}&limit=${limit}`,
      });
      const goesOn = lines.length === limit || !hasEnded(job);
      return {
        lines: lines.map((line) => ({ ...line, time: formatOptionalTime(line.time) })),
        links: [link('self', after), ...(goesOn ? [link('next', lines.at(-1)?.seq ?? after)] : [])],
      };
    },
  );

  let listeners = 0;
  server.get<Id & { Querystring: { after?: number } }>(
    '/jobs/:id/events',
    {
      preHandler: forwardToLeader(services),
      // It would be a stream without an end and without a body.
      exposeHeadRoute: false,
      schema: {
        summary: 'What happens to a job, as server-sent events',
        tags,
        response: {
          200: jsonResponse('JobEvent', 'The events', 'text/event-stream'),
          204: emptyResponse('There will be no more'),
        },
        params,
        querystring: closedObject({ after: number }),
        headers: { type: 'object', properties: { 'last-event-id': { type: 'string' } } },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const last = Number(request.headers['last-event-id'] || Number.NaN);
      const known = Number.isSafeInteger(last) && last >= 0;
      // A browser asks again after the end until it is told so by 204.
      const job = await jobs.get(id);
      if (known && hasEnded(job) && last >= (job.lines ?? 0)) return reply.code(204).send();
      if (listeners >= MAX_EVENT_STREAMS) throw tooManyListeners(MAX_EVENT_STREAMS);
      listeners++;
      const abort = new AbortController();
      onDisconnect(reply, () => {
        listeners--;
        abort.abort();
      });
      const after = known ? last : request.query.after;
      const text = eventStream(jobs, id, { after, signal: abort.signal }, baseUrl(request));
      return (
        reply
          .header('content-type', 'text/event-stream; charset=utf-8')
          .header('cache-control', 'no-store')
          .header('x-accel-buffering', 'no')
          // So that a server that stops need not wait for the client to let go.
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
      schema: { summary: 'Cancels a job', tags, params, response: status },
    },
    async (request) => statusInfo(await jobs.cancel(request.params.id), baseUrl(request)),
  );

  server.post<Id>(
    '/jobs/:id/retry',
    {
      preHandler: forwardToLeader(services, { includeEnded: true }),
      config: { write: true },
      schema: {
        summary: 'Starts a job for what failed in one that has ended',
        tags,
        params,
        response: startResponses,
      },
    },
    async (request, reply) => {
      const { id, process } = await jobs.get(request.params.id);
      const found = processes.get(process);
      if (!found) throw processNotFound(process);
      // What the owner of the node may read, others may not have read for them.
      const fence = process === 'ingest' && !request.isOwner;
      const terms = (given: unknown) => (fence ? { ...(given as object), fenced: true } : given);
      return sendJob(request, reply, { job: await jobs.retry(id, found, terms), repeated: false });
    },
  );
}

/** A page begins after a job that is there. Throws TW_API_TOKEN. */
async function requireJob(jobs: JobService, token: string): Promise<void> {
  await jobs.get(token).catch((error) => {
    throw jobNotFound.is(error) ? badPagingToken.because(error, token) : error;
  });
}

const DEFAULT_FILE_TYPE = 'application/octet-stream';
const HTML = 'text/html; charset=utf-8';
const FILE_TYPES: Record<string, string> = {
  '.tif': 'image/tiff',
  '.json': 'application/json',
  '.html': HTML,
};

/** With the status of its code: who asked for what cannot be done is told so, also by the results. */
function errorOf({ code, message }: { code: string; message: string }): TilewrightError {
  const status = errorCatalogue().find((known) => known.code === code)?.status ?? 500;
  return new TilewrightError(code, status, message);
}

function resultsOf(job: JobRecord): unknown {
  if (hasResults(job)) return job.results;
  if (job.error) throw errorOf(job.error);
  throw jobNotReady(job.id, job.status);
}
