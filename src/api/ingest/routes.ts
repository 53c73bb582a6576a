import { readdir, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import type { IngestInputs } from '../../ingest/index.js';
import { startProcess } from '../../jobs/index.js';
import { outsideFolder } from '../errors.js';
import { answerJob } from '../processes/routes.js';
import type { Services } from '../services.js';

interface IngestBody extends Omit<IngestInputs, 'paths'> {
  href: string | string[];
}

/** `POST /ingest` with `{"href"}`: a scene on the server's disk, inside an allowed folder, becomes a job. */
export async function ingestRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const ingest = services.processes.get('ingest');
  if (!ingest) throw new Error('the ingest process is not wired');
  const { paths: _paths, ...options } = ingest.inputs.properties as Record<string, unknown>;

  server.post<{ Body: IngestBody }>(
    '/ingest',
    {
      config: { write: true },
      schema: {
        summary: 'Ingests a scene from a folder of the server',
        tags: ['ingest'],
        body: {
          type: 'object',
          required: ['href'],
          additionalProperties: false,
          properties: {
            href: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 10_000 },
            ...options,
          },
        },
      },
    },
    async (request, reply) => {
      const { href, ...rest } = request.body;
      const paths = await Promise.all(
        [href].flat().map((one) => allowedPath(one, request.isOwner, services)),
      );
      return answerJob(request, reply, await startProcess(services.jobs, ingest, { ...rest, paths }));
    },
  );
}

/** The real path of an href; links out of the allowed folders do not help. The server's own user may name any path. */
async function allowedPath(href: string, isOwner: boolean, { allowedFolders }: Services): Promise<string> {
  const path = pathOf(href);
  if (isOwner) return path;
  // What cannot be resolved (missing, forbidden, a loop of links) is refused below.
  const real = await realpath(path).catch(() => null);
  const inside = (folder: string) => {
    const below = relative(folder, real ?? '/');
    return below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below);
  };
  // The same answer for what is missing and what is outside: the route tells nothing of the disk.
  if (real === null || !isAbsolute(path) || !allowedFolders.some(inside)) throw outsideFolder(href);
  if (await holdsLinks(real)) throw outsideFolder(href);
  return real;
}

function pathOf(href: string): string {
  if (!href.startsWith('file:')) return href;
  try {
    return fileURLToPath(href);
  } catch (error) {
    throw outsideFolder.because(error, href);
  }
}

/** Links in a product folder could lead out of the allowed folders; products are two levels deep at most. */
async function holdsLinks(path: string, levels = 2): Promise<boolean> {
  if (levels === 0 || !(await stat(path)).isDirectory()) return false;
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (!entry.isFile() && !entry.isDirectory()) return true;
    if (entry.isDirectory() && (await holdsLinks(join(path, entry.name), levels - 1))) return true;
  }
  return false;
}
