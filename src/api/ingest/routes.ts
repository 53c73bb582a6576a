import { isAbsolute } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Fence, type IngestInputs, outsideFence } from '../../ingest/index.js';
import { type Process, startProcess } from '../../jobs/index.js';
import { badRequest, outsideFolder } from '../errors.js';
import { answerJob } from '../processes/routes.js';
import type { Services } from '../services.js';
import { admit, receive, type Upload } from './upload.js';

type Options = Omit<IngestInputs, 'paths' | 'within' | 'sentAs'>;

interface IngestBody extends Options {
  href: string | string[];
}

interface UploadQuery extends Options {
  filename?: string;
}

const FILE = 'application/octet-stream';

/**
 * `POST /ingest` starts a job: with `{"href"}`, for a scene on the server's disk inside an allowed folder; with a file as
 * body (`application/octet-stream`), for that file, its options being query parameters.
 */
export async function ingestRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const ingest = services.processes.get('ingest');
  if (!ingest) throw new Error('the ingest process is not wired');
  const { paths: _paths, ...options } = ingest.inputs.properties as Record<string, unknown>;
  const object = { type: 'object', additionalProperties: false };
  const href = { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 10_000 };

  server.removeContentTypeParser('text/plain');
  server.addContentTypeParser(FILE, (_request, payload, done) => done(null, payload));

  server.post<{ Body: IngestBody | Readable | undefined; Querystring: UploadQuery }>(
    '/ingest',
    {
      config: { write: true },
      schema: {
        summary: 'Ingests a scene from a folder of the server, or a file that is sent',
        tags: ['ingest'],
        querystring: { ...object, properties: { filename: { type: 'string' }, ...options } },
        body: {
          content: {
            'application/json': {
              schema: { ...object, required: ['href'], properties: { href, ...options } },
            },
            [FILE]: { schema: {} },
          },
        },
      },
      onRequest: async ({ headers }) => {
        if (headers['content-type'] === FILE) await admit(headers['content-length'], services);
      },
      preValidation: async (request) => {
        const { query } = request;
        if (typeof query.bands === 'string') query.bands = bandNumbers(query.bands);
      },
    },
    async (request, reply) => {
      const { body, query } = request;
      if (body instanceof Readable) {
        const { filename, ...rest } = query;
        if (!filename) throw badRequest('a file needs its name: POST /ingest?filename=scene.tif');
        const upload = await receive(body, filename, services);
        return answerJob(request, reply, await ingestUpload(request, upload, filename, rest));
      }
      if (body === undefined) throw badRequest(`send JSON with "href", or a file as ${FILE}`);
      if (Object.keys(query).length > 0) throw badRequest('options beside "href" belong into the JSON');
      const { href, ...rest } = body;
      const paths = await Promise.all(
        [href].flat().map((one) => allowedPath(one, request.isOwner, services)),
      );
      const inputs = { ...rest, paths };
      const terms = request.isOwner ? {} : { within: services.allowedFolders };
      const job = await startProcess(services.jobs, ingest, inputs, { ...inputs, ...terms });
      return answerJob(request, reply, job);
    },
  );

  async function ingestUpload(
    request: FastifyRequest,
    { path, remove: removeFile }: Upload,
    sentAs: string,
    options: Options,
  ) {
    const { jobs } = services;
    const remove = () =>
      removeFile().catch((err) => request.log.error({ err }, 'an uploaded file could not be removed'));
    try {
      const told = { ...options, paths: [sentAs] };
      const job = await startProcess(jobs, ingest as Process, told, { ...options, paths: [path], sentAs });
      jobs.wait(job.id).then(remove, remove);
      return job;
    } catch (error) {
      await remove();
      throw error;
    }
  }
}

/** "red=3,nir=4" as the numbers that the schema wants; what is none is left for it to refuse. */
function bandNumbers(text: string): Record<string, number> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const [name, number] = pair.split(/[=:]/);
      return [name, Number(number)];
    }),
  );
}

/**
 * The real path of an href; the server's own user may name any path. The job looks again when it opens the files. The same answer
 * for what is missing and what is outside: the route tells nothing of the disk.
 */
async function allowedPath(href: string, isOwner: boolean, { allowedFolders }: Services): Promise<string> {
  const path = pathOf(href);
  if (isOwner) return path;
  if (!isAbsolute(path)) throw outsideFolder(href);
  return new Fence(allowedFolders).enter(path).catch((error) => {
    throw outsideFence.is(error) ? outsideFolder.because(error, href) : error;
  });
}

function pathOf(href: string): string {
  if (!href.startsWith('file:')) return href;
  try {
    return fileURLToPath(href);
  } catch (error) {
    throw outsideFolder.because(error, href);
  }
}
