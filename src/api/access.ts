/**
 * Who may do what. Reads are open to other origins; writes and jobs need the server's token where it has one. Without a
 * token the server is bound to loopback, and then only requests that name loopback are answered and pages of other origins
 * may not write, so that a web page in a browser on this machine cannot reach it by DNS rebinding or cross-site requests.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { foreignHost, foreignOrigin, openBind, unauthorized } from './errors.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that change something or start work. */
    write?: boolean;
  }
  interface FastifyRequest {
    /** The request carries the secret of the data folder's lock: it comes from the user who runs the server. */
    isOwner: boolean;
  }
}

export interface AccessOptions {
  token?: string;
  /** The secret in the data folder's lock file, readable by the user who runs the server only. */
  ownerSecret: string;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/** Questions with a body. They change nothing. */
const POST_READS = /^\/(search|(collections\/[^/]+\/)?aggregate)$/;

/** Refuses to let other machines in without a token. */
export function requireSafeBinding(host: string, token: string | undefined): void {
  const loopback = host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
  if (!loopback && !token) throw openBind(host);
}

function bearer(request: FastifyRequest): string | undefined {
  return /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
}

/** Compares digests, so that the time taken tells nothing of the secret. */
function same(given: string | undefined, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return given !== undefined && timingSafeEqual(digest(given), digest(secret));
}

export function controlAccess(server: FastifyInstance, { token, ownerSecret }: AccessOptions): void {
  server.decorateRequest('isOwner', false);
  server.addHook('onRequest', async (request, reply) => {
    const host = request.headers.host ?? '';
    if (!token && !LOOPBACK.test(host)) throw foreignHost(host);
    const { origin } = request.headers;
    const write = request.routeOptions.config.write === true;
    request.isOwner = same(bearer(request), ownerSecret);
    if (write && !request.isOwner) {
      if (token && !same(bearer(request), token)) throw unauthorized();
      if (!token && origin !== undefined && !LOOPBACK.test(origin.replace(/^https?:\/\//, '')))
        throw foreignOrigin(origin);
    }
    if (!write)
      reply.header('access-control-allow-origin', '*').header('access-control-expose-headers', 'etag, link');
  });
  server.options('/*', { schema: { hide: true } }, async (request, reply) => {
    const wanted = request.headers['access-control-request-method'] ?? 'GET';
    const path = request.url.split('?')[0]!;
    const readable = wanted === 'GET' || wanted === 'HEAD' || (wanted === 'POST' && POST_READS.test(path));
    if (readable) {
      reply
        .header('access-control-allow-methods', 'GET, HEAD, POST')
        .header('access-control-allow-headers', 'accept, content-type, range, if-none-match')
        .header('access-control-max-age', '86400');
    }
    return reply.code(204).send();
  });
}
