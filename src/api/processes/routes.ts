/** OGC API Processes, part 1: process list, execution as jobs, status and results. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { TilewrightError } from '../../errors.js';
import { type Process, startProcess } from '../../jobs/index.js';
import type { JobRecord } from '../../storage/index.js';
import { baseUrl } from '../base-url.js';
import { notFound } from '../errors.js';
import type { Services } from '../services.js';

const ID = { params: { type: 'object', properties: { id: { type: 'string' } } } };

const summary = ({ id, title, description }: Process) => ({
  id,
  title,
  description,
  version: '1.0.0',
  jobControlOptions: ['async-execute', 'dismiss'],
});

/** The status document of a job: OGC statusInfo, with tiles counted and links. */
function statusInfo(job: JobRecord, base: string) {
  const iso = (time: number | undefined) => (time === undefined ? undefined : new Date(time).toISOString());
  const { total, done, failed, skipped } = job.tiles;
  const ofTiles = total > 0 ? (done + failed + skipped) / total : 0;
  const share = job.share ?? ofTiles;
  return {
    jobID: job.id,
    processID: job.process,
    type: 'process',
    status: job.status,
    message: job.message,
    created: iso(job.created),
    started: iso(job.started),
    finished: iso(job.finished),
    updated: iso(job.updated),
    progress: job.status === 'successful' ? 100 : Math.floor(share * 100),
    tiles: job.tiles,
    ...(job.status === 'running' && pace(job, share)),
    ...(job.error && { error: job.error }),
    links: [
      { rel: 'self', type: 'application/json', href: `${base}/jobs/${job.id}` },
      ...(job.status === 'successful'
        ? [
            {
              rel: 'http://www.opengis.net/def/rel/ogc/1.0/results',
              type: 'application/json',
              href: `${base}/jobs/${job.id}/results`,
            },
          ]
        : []),
    ],
  };
}

/** How fast a running job gets on, from its start to its last sign of life. */
function pace({ started = 0, updated, tiles }: JobRecord, share: number) {
  const seconds = (updated - started) / 1000;
  if (seconds <= 0 || share === 0) return {};
  return {
    tilesPerSecond: Number(((tiles.done + tiles.failed + tiles.skipped) / seconds).toPrecision(3)),
    secondsLeft: Math.ceil((seconds * (1 - share)) / share),
  };
}

export async function processRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { jobs, processes } = services;
  const findProcess = (id: string) => {
    const found = processes.get(id);
    if (!found) throw notFound(`process ${id}`);
    return found;
  };

  server.get('/processes', { schema: { summary: 'What can be run', tags: ['processes'] } }, async () => ({
    processes: [...processes.values()].map(summary),
    links: [],
  }));

  server.get<{ Params: { id: string } }>(
    '/processes/:id',
    { schema: { summary: 'A process and its inputs', tags: ['processes'], ...ID } },
    async (request) => {
      const found = findProcess(request.params.id);
      return { ...summary(found), inputs: found.inputs };
    },
  );

  for (const process of processes.values()) {
    // Paths on the server's disk are open to `POST /ingest` alone, which checks them.
    if (process.id === 'ingest') continue;
    server.post<{ Body: { inputs?: unknown } }>(
      `/processes/${process.id}/execution`,
      {
        config: { write: true },
        schema: {
          summary: `Starts a job: ${process.title.toLowerCase()}`,
          tags: ['processes'],
          body: {
            type: 'object',
            additionalProperties: false,
            properties: { inputs: process.inputs },
            required: process.inputs.required ? ['inputs'] : [],
          },
        },
      },
      async (request, reply) =>
        answerJob(request, reply, await startProcess(jobs, process, request.body.inputs ?? {})),
    );
  }

  server.get(
    '/jobs',
    { schema: { summary: 'All jobs, newest first', tags: ['processes'] } },
    async (request) => ({
      jobs: (await jobs.list()).map((job) => statusInfo(job, baseUrl(request))),
      links: [],
    }),
  );

  server.get<{ Params: { id: string } }>(
    '/jobs/:id',
    {
      schema: {
        summary: 'Status of a job; of a failed one also the results, where it has some',
        tags: ['processes'],
        ...ID,
      },
    },
    async (request) => {
      const job = await jobs.get(request.params.id);
      const { status, results } = job;
      return { ...statusInfo(job, baseUrl(request)), ...(status === 'failed' && { results }) };
    },
  );

  server.get<{ Params: { id: string } }>(
    '/jobs/:id/results',
    { schema: { summary: 'Results of a finished job', tags: ['processes'], ...ID } },
    async (request) => resultsOf(await jobs.get(request.params.id)),
  );

  server.get<{ Params: { id: string; name: string } }>(
    '/jobs/:id/results/files/:name',
    { schema: { summary: 'A file that a job answered with; kept for a week', tags: ['processes'] } },
    async (request, reply) => {
      const { id, name } = request.params;
      const { status } = await jobs.get(id);
      const path = services.storage.resultPath(id, name);
      const size = status === 'successful' ? (await stat(path).catch(absent))?.size : undefined;
      if (size === undefined) throw notFound(`file ${name} of job ${id}`);
      const type = RESULT_TYPES[extname(name)] ?? 'application/octet-stream';
      return reply.header('content-length', size).type(type).send(createReadStream(path));
    },
  );

  server.delete<{ Params: { id: string } }>(
    '/jobs/:id',
    { config: { write: true }, schema: { summary: 'Cancels a job', tags: ['processes'], ...ID } },
    async (request) => statusInfo(await jobs.cancel(request.params.id), baseUrl(request)),
  );
}

const RESULT_TYPES: Record<string, string> = { '.tif': 'image/tiff', '.json': 'application/json' };

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

function resultsOf(job: JobRecord): unknown {
  if (job.status === 'successful') return job.results;
  if (job.error) throw new TilewrightError(job.error.code, 500, job.error.message);
  throw notFound(`result of job ${job.id}, which is ${job.status}`);
}

/** 201 with the job's status and place. */
export function answerJob(request: FastifyRequest, reply: FastifyReply, job: JobRecord): FastifyReply {
  const base = baseUrl(request);
  return reply.code(201).header('location', `${base}/jobs/${job.id}`).send(statusInfo(job, base));
}
