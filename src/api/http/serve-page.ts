/** Files of the pages that the server has for browsers. They need no token and hold no data of the store. */
import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fileResponse } from '../schemas/index.js';
import { withoutTrailingSlash } from './base-url.js';
import { notModified, weakEtag } from './conditional-request.js';

const HTML = 'text/html; charset=utf-8';
export const CSS = 'text/css; charset=utf-8';
export const JSON_TYPE = 'application/json; charset=utf-8';
export const SCRIPT = 'text/javascript; charset=utf-8';

/** Everything comes from this server; a page has no scripts and styles in itself. Pictures may be data addresses and blobs. */
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

/** The page itself asks for the token that data needs. */
const OPEN = { open: true };

/** Serves the HTML document of a page, and redirects from its address with a trailing slash. */
export function servePage(
  server: FastifyInstance,
  path: string,
  document: string,
  operation: { summary: string; tags: string[] },
): void {
  const send = pageSender(HTML, document);
  const schema = { ...operation, response: { 200: fileResponse('The page', 'text/html') } };
  server.get(path, { config: OPEN, schema }, async (request, reply) => {
    const address = withoutTrailingSlash(request);
    return address ? reply.redirect(address, 308) : send(request, reply);
  });
}

/** Serves a file of a page at a path. It is read once, when it is first requested. */
export function servePageFile(
  server: FastifyInstance,
  path: string,
  type: string,
  read: () => Promise<string>,
): void {
  let sender: Promise<ReturnType<typeof pageSender>> | undefined;
  server.get(path, { config: OPEN, schema: { hide: true } }, async (request, reply) => {
    sender ??= read().then((text) => pageSender(type, text));
    sender.catch(() => {
      sender = undefined;
    });
    return (await sender)(request, reply);
  });
}

/** Returns a function that sends a file of a page, or 304 to a client that has it. */
function pageSender(type: string, text: string) {
  const etag = weakEtag(hash('sha1', text, 'base64url'));
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    reply
      .header('content-security-policy', POLICY)
      .header('x-content-type-options', 'nosniff')
      .header('cache-control', 'no-cache')
      .header('vary', 'accept-encoding');
    if (notModified(request, reply, etag)) return reply.send();
    return reply.type(type).send(text);
  };
}
