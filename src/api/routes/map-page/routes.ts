/** `/map`: a page that shows collections on a map. All its resources come from this server. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { notModified, weakEtag, withoutTrailingSlash } from '../../http/index.js';
import { fileResponse } from '../../schemas/index.js';
import { document } from './document.js';
import { style } from './style.js';

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** Modules of the page, compiled with the server. */
const MODULES = [
  'access',
  'address',
  'api',
  'chart',
  'graticule',
  'leaflet-global',
  'legend',
  'looks',
  'page',
  'place',
  'plot',
  'spectrum',
];

/**
 * Forbids other origins and inline scripts. Leaflet's empty image is a data URL; images that are fetched with a token are blobs.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** These files are public, because every release contains them. The page asks the user for the token that data needs. */
const OPEN = { open: true };

export async function mapPageRoutes(server: FastifyInstance): Promise<void> {
  server.get(
    '/map',
    {
      config: OPEN,
      schema: {
        summary: 'A page that shows collections on a map',
        tags: ['maps'],
        response: { 200: fileResponse('The page', 'text/html') },
      },
    },
    async (request, reply) => {
      const page = withoutTrailingSlash(request);
      return page ? reply.redirect(page, 308) : send(request, reply, HTML, document);
    },
  );
  const serve = (name: string, type: string, text: () => Promise<string>) =>
    server.get(`/map/${name}`, { config: OPEN, schema: { hide: true } }, async (request, reply) =>
      send(request, reply, type, await text()),
    );
  const file = (address: string) => () => readFile(new URL(address), 'utf8');
  const leaflet = (name: string) => file(import.meta.resolve(`leaflet/dist/${name}`));
  serve('page.css', CSS, async () => style);
  serve('leaflet.css', CSS, leaflet('leaflet.css'));
  serve('leaflet.js', SCRIPT, leaflet('leaflet.js'));
  for (const name of MODULES) serve(`${name}.js`, SCRIPT, file(import.meta.resolve(`./browser/${name}.js`)));
}

function send(request: FastifyRequest, reply: FastifyReply, type: string, text: string): FastifyReply {
  const etag = weakEtag(createHash('sha1').update(text).digest('base64url'));
  reply
    .header('content-security-policy', POLICY)
    .header('x-content-type-options', 'nosniff')
    .header('cache-control', 'no-cache')
    .header('vary', 'accept-encoding');
  if (notModified(request, reply, etag)) return reply.send();
  return reply.type(type).send(text);
}
