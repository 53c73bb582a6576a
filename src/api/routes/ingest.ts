/** `POST /ingest`: scenes in allowed folders, or an uploaded file. A path outside of the allowed folders reveals nothing about the disk. */
import { createHash, type Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { basename, isAbsolute, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { TilewrightError } from '../../errors.js';
import { checkNamePattern, type IngestInputs, PathGuard, pathNotAllowed } from '../../ingest/index.js';
import type { Process } from '../../jobs/index.js';
import { checkBbox } from '../../query/index.js';
import { asStorageError, type JobRecord } from '../../storage/index.js';
import { documented } from '../../utils/json-schema.js';
import { isRemoteAddress } from '../../utils/text.js';
import { badRequest, bodyTooLarge, outsideFolder, uploadAborted } from '../errors.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag } from '../schemas/openapi.js';
import type { RouteGroup, Services } from '../services.js';
import {
  type ExecuteRequest,
  executionRoute,
  idempotencyKey,
  idempotencyKeyHeader,
  sendJob,
  startJob,
  startResponses,
  startWithFile,
  wantedResultOptions,
} from './execution.js';

/** File systems accept 255. */
const MAX_NAME_BYTES = 200;

/**
 * A file name that is safe on disk: the last part of the path, with letters, digits, spaces and `._()+,=@-` only, and not hidden. A long
 * name keeps its end, which states the type. Names are changed as little as possible, because scene ids come from them.
 */
export function safeName(filename: string): string {
  const base = filename.split(/[/\\]/).at(-1) ?? '';
  const characters = [...base.replace(/[^\p{L}\p{M}\p{N} ._()+,=@-]+/gu, '-').slice(-MAX_NAME_BYTES)];
  while (Buffer.byteLength(characters.join('')) > MAX_NAME_BYTES) characters.shift();
  return characters.join('').replace(/^[^\p{L}\p{N}_]+/u, '') || 'upload';
}

/** Refuses an upload before it is sent if it is too large by its Content-Length. Throws TW_API_TOO_LARGE, TW_STORAGE_DISK_LOW. */
async function checkUploadSize(contentLength: string | undefined, services: Services): Promise<void> {
  const bytes = Number(contentLength ?? 0);
  if (bytes > services.maxUpload) throw bodyTooLarge(services.maxUpload, 'file');
  await services.storage.reserve.check(bytes);
}

/** An uploaded file. It is streamed to a scratch folder, ingested from there, and removed afterwards. */
interface Upload {
  path: string;
  /** Name of the scratch folder that contains the file. */
  scratch: string;
}

/**
 * Writes a body to a file in its own scratch folder, synced so that it outlives a power cut, and updates `digest` with all bytes. Removes
 * the folder on failure. Throws TW_API_TOO_LARGE, TW_API_CUT_OFF, TW_STORAGE_DISK_LOW.
 */
export async function saveUpload(
  body: Readable,
  filename: string,
  services: Services,
  digest?: Hash,
): Promise<Upload> {
  const { storage, maxUpload } = services;
  const folder = await storage.scratch.make('upload');
  const path = join(folder, safeName(filename));
  const scratch = basename(folder);
  let bytes = 0;
  const chunks = async function* () {
    // A refused body must not be destroyed, because its socket carries the answer.
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxUpload) throw bodyTooLarge(maxUpload, 'file');
      await storage.reserve.check(chunk.length);
      digest?.update(chunk);
      yield chunk;
    }
  };
  try {
    await pipeline(chunks, createWriteStream(path, { flags: 'wx', highWaterMark: 1 << 20, flush: true }));
    if (bytes === 0) throw badRequest('the file is empty');
    await storage.scratch.sync(scratch);
    return { path, scratch };
  } catch (error) {
    await storage.scratch.remove(scratch);
    if (error instanceof TilewrightError) throw error;
    // A body that was read to its end is destroyed too, but not aborted.
    if (body.readableAborted || body.errored) throw uploadAborted.because(error, filename);
    throw asStorageError(error, storage.dir);
  }
}

type Options = Omit<IngestInputs, 'paths' | 'stac' | 'fenced' | 'sentAs'>;

interface IngestBody extends Options {
  href?: string | string[];
  stac?: IngestInputs['stac'];
}

interface UploadQuery extends Options {
  filename?: string;
}

const FILE_TYPE = 'application/octet-stream';

/**
 * `POST /ingest` starts a job. The body is either `{"href"}`, for scenes on the server's disk inside an allowed folder, or a file
 * (`application/octet-stream`), with the options as query parameters. `POST /processes/ingest/execution` is the OGC form of the first.
 */
export const ingestRoutes: RouteGroup = async (server, { services }) => {
  const { jobs } = services;
  const ingest = services.processes.get('ingest');
  if (!ingest) throw new Error('the ingest process is not wired');
  const { paths: _paths, stac, ...options } = ingest.inputs.properties as Record<string, unknown>;
  const hrefs = { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 10_000 };
  const href = { anyOf: [{ type: 'string' }, hrefs] };

  server.removeContentTypeParser('text/plain');
  server.addContentTypeParser(FILE_TYPE, (_request, payload, done) => done(null, payload));

  server.post<{ Body: IngestBody | Readable | undefined; Querystring: UploadQuery }>(
    '/ingest',
    {
      config: { write: true },
      ...describeWithTag('ingest')(
        'Ingests scenes from a folder of the server, or an uploaded file',
        startResponses,
        {
          headers: idempotencyKeyHeader,
          querystring: closedObject({
            filename: documented(
              {
                type: 'string',
                description: 'Name of the uploaded file: required for an upload, refused with JSON',
              },
              { minLength: 1 },
            ),
            ...options,
            bands: inUrl(
              options['bands'],
              '^[\\w.-]{1,64}[=:][1-9][0-9]{0,8}(,[\\w.-]{1,64}[=:][1-9][0-9]{0,8})*$',
            ),
            bbox: inUrl(options['bbox'], '^-?[0-9.]+(,-?[0-9.]+){3}$'),
            wavelengths: inUrl(options['wavelengths'], '^[0-9.]+(,[0-9.]+)+$'),
          }),
          body: {
            content: {
              'application/json': {
                schema: closedObject(
                  { href, stac, ...options },
                  { anyOf: [{ required: ['href'] }, { required: ['stac'] }] },
                ),
              },
              [FILE_TYPE]: { schema: { type: 'string', format: 'binary' } },
            },
          },
        },
      ),
      onRequest: async ({ headers }) => {
        if (headers['content-type'] === FILE_TYPE) await checkUploadSize(headers['content-length'], services);
      },
      preValidation: async (request) => {
        const { query } = request;
        if (typeof query.bands === 'string') query.bands = bandNumbers(query.bands);
        for (const name of ['wavelengths', 'bbox'] as const) {
          const value: unknown = query[name];
          if (typeof value === 'string') Object.assign(query, { [name]: value.split(',').map(Number) });
        }
      },
    },
    async (request, reply) => {
      const { body, query } = request;
      if (body instanceof Readable) {
        const { filename, ...rest } = query;
        if (!filename) throw badRequest('a file needs its name: POST /ingest?filename=scene.tif');
        return ingestUpload(request, reply, body, filename, rest);
      }
      if (body === undefined) throw badRequest(`send JSON with "href", or a file as ${FILE_TYPE}`);
      if (Object.keys(query).length > 0) throw badRequest('send options in the JSON, next to "href"');
      const { href, ...rest } = body;
      return ingestPaths(request, reply, { ...rest, ...(href !== undefined && { paths: [href].flat() }) });
    },
  );

  server.post<{ Body: ExecuteRequest & { inputs: IngestInputs } }>(
    '/processes/ingest/execution',
    executionRoute(ingest),
    (request, reply) => {
      const resultOptions = wantedResultOptions(ingest as Process, request.body);
      return ingestPaths(request, reply, request.body.inputs, resultOptions);
    },
  );

  async function ingestPaths(
    request: FastifyRequest,
    reply: FastifyReply,
    asked: IngestInputs,
    resultOptions?: JobRecord['resultOptions'],
  ) {
    checkNamePattern(asked);
    if (asked.bbox) checkBbox(asked.bbox);
    const paths = await Promise.all(
      (asked.paths ?? []).map((path) => allowedPath(path, request.isOwner, services)),
    );
    const inputs = { ...asked, ...(asked.paths && { paths }) };
    const started = await startJob(request, jobs, ingest as Process, inputs, {
      asked,
      resultOptions,
      ...(!request.isOwner && { given: { ...inputs, fenced: true } }),
    });
    return sendJob(request, reply, started);
  }

  async function ingestUpload(
    request: FastifyRequest,
    reply: FastifyReply,
    body: Readable,
    filename: string,
    options: Options,
  ) {
    checkNamePattern(options);
    if (options.bbox) checkBbox(options.bbox);
    // Only requests with an idempotency key are compared with others.
    const digest = idempotencyKey(request) === undefined ? undefined : createHash('sha256');
    const { path, scratch } = await saveUpload(body, filename, services, digest);
    const inputs = { ...options, paths: [filename] };
    const started = await startWithFile(request, services, ingest as Process, inputs, {
      scratch,
      given: { ...options, paths: [path], sentAs: filename },
      asked: { ...options, filename, sha256: digest?.digest('hex') },
    });
    return sendJob(request, reply, started);
  }
};

/** Describes an option as it is written in a URL. */
const inUrl = (schema: unknown, pattern: string) =>
  documented(schema as object, {
    ...{ type: 'string', pattern },
    ...{ items: undefined, additionalProperties: undefined, maxProperties: undefined, minItems: undefined },
    ...{ maxItems: undefined, propertyNames: undefined },
  });

/** Parses "red=3,nir=4". A value that is not a number becomes NaN, which the schema refuses. */
function bandNumbers(text: string): Record<string, number> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const [name, number] = pair.split(/[=:]/);
      return [name, Number(number)];
    }),
  );
}

/**
 * The real path of an href. The user who runs the server may name any path. The job repeats the check when it opens the files. Throws
 * TW_INGEST_NOT_RECOGNISED for a missing file in an allowed folder. Outside, missing and existing files get the same answer, so that
 * the route reveals nothing about the disk.
 */
async function allowedPath(href: string, isOwner: boolean, { allowedFolders }: Services): Promise<string> {
  // The policy of hosts decides on addresses.
  if (isRemoteAddress(href)) return href;
  const path = pathOf(href);
  if (isOwner) return path;
  if (!isAbsolute(path)) throw outsideFolder(href);
  return new PathGuard(allowedFolders).resolveAllowed(path).catch((error) => {
    throw pathNotAllowed.is(error) ? outsideFolder.because(error, href) : error;
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
