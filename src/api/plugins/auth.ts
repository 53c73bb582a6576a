/**
 * Who may do what. A token of the scope `write` opens everything, one of the scope `read` the reads; reads are open to all
 * where the server has no token for them, and files of the program itself always are. Reads are open to other origins too.
 * Without any token the server is bound to loopback, and then only requests that name loopback are answered and pages of other
 * origins may not write, so that a web page in a browser on this machine cannot reach it by DNS rebinding or cross-site requests.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { verifySignature } from '../../dht/index.js';
import {
  bindWithoutToken,
  foreignHost,
  foreignOrigin,
  insufficientScope,
  rateLimited,
  unauthorized,
} from '../errors.js';
import { RateLimit } from './rate-limit.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that change something or start work. */
    write?: boolean;
    /** True for routes that hold no data of the store: open to all, whatever the token. */
    open?: boolean;
    /** True for messages between nodes: they are signed, and need no token. */
    internal?: boolean;
  }
  interface FastifyRequest {
    /** The request carries the secret of the data folder's lock: it comes from the user who runs the server. */
    isOwner: boolean;
    /** Of a request that another node passes on: the address by which the client reached that one. */
    forwardedBaseUrl: string | undefined;
  }
}

export interface AccessOptions {
  /** Opens everything. */
  token?: string;
  /** Opens reads, which then need it or `token`. */
  readToken?: string;
  /** The secret in the data folder's lock file, readable by the user who runs the server only. */
  ownerSecret: string;
  /** Requests a second that one address may make in the long run; 0 for any number. By default 200 where there is a token. */
  rateLimit?: number;
  /** Of the cluster: signs what its nodes pass on, for which they have asked for the token. */
  secret?: string;
}

/** Header of a request that a node passes on: the address by which the client reached it. */
export const FORWARDED_BASE_URL_HEADER = 'tilewright-door';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;
const DEFAULT_RATE_LIMIT = 200;

/** Questions with a body. They change nothing. */
const READ_ONLY_POST_ROUTES =
  /^\/(search|timeseries|spectra|similar|training\/(place|check)|(collections\/[^/]+\/)?aggregate)\/?$/;

/** Refuses to let other machines in without a token. */
export function requireSafeBinding(host: string, token: string | undefined): void {
  const loopback = host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
  if (!loopback && !token) throw bindWithoutToken(host);
}

function bearer(request: FastifyRequest): string | undefined {
  return /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
}

/** Whether a node of the cluster passes the request on. It has no body, so that the signature is of all of it. Throws TW_DHT_FOREIGN_NODE. */
function isForwarded({ method, url: path, headers }: FastifyRequest, secret: string | undefined): boolean {
  if (headers[FORWARDED_BASE_URL_HEADER] === undefined || !secret) return false;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (hasBody) return false;
  verifySignature(secret, { method, path, body: Buffer.alloc(0) }, headers.authorization);
  return true;
}

/** Compares digests, so that the time taken tells nothing of the secret. */
function secretsEqual(given: string | undefined, secret: string | undefined): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return given !== undefined && !!secret && timingSafeEqual(digest(given), digest(secret));
}

/** RFC 6750, section 3: what is missing, and where the token was no good, why. */
function challenge(reply: FastifyReply, error?: string): void {
  reply.header('www-authenticate', `Bearer realm="tilewright"${error ? `, ${error}` : ''}`);
}

export function registerAuth(server: FastifyInstance, options: AccessOptions): void {
  const { token, readToken, ownerSecret } = options;
  const guarded = Boolean(token || readToken);
  const rate = new RateLimit(options.rateLimit ?? (guarded ? DEFAULT_RATE_LIMIT : 0));
  server.decorateRequest('isOwner', false);
  server.decorateRequest('forwardedBaseUrl', undefined);
  server.addHook('onRequest', async (request, reply) => {
    const host = request.headers.host ?? '';
    if (!guarded) for (const name of [host, request.host]) if (!LOOPBACK.test(name)) throw foreignHost(name);
    if (request.routeOptions.config.internal) return;
    if (isForwarded(request, options.secret)) {
      request.forwardedBaseUrl = String(request.headers[FORWARDED_BASE_URL_HEADER]);
      return;
    }
    const given = bearer(request);
    request.isOwner = secretsEqual(given, ownerSecret);
    const mayWrite = request.isOwner || secretsEqual(given, token);
    const mayRead = mayWrite || secretsEqual(given, readToken) || !readToken;
    const { write = false, open = false } = request.routeOptions.config;
    if (!write) {
      reply
        .header('access-control-allow-origin', '*')
        .header(
          'access-control-expose-headers',
          'accept-ranges, content-length, content-range, etag, link, location, x-request-id, retry-after, tilewright-seq',
        );
    }
    if (!request.isOwner) limitRate(rate, request, reply);
    // Browsers ask before they send the token.
    if (request.method === 'OPTIONS' || mayWrite) return;
    if (write) {
      if (guarded) sendUnauthorized(reply, given, secretsEqual(given, readToken));
      const { origin } = request.headers;
      if (origin !== undefined && !LOOPBACK.test(origin.replace(/^https?:\/\//, '')))
        throw foreignOrigin(origin);
    } else if (!mayRead && !open) sendUnauthorized(reply, given, false);
  });
  // A shared cache may give what is public to those without a token (RFC 9111, section 3.5).
  server.addHook('onSend', async (_request, reply) => {
    const kept = reply.getHeader('cache-control');
    if (readToken && typeof kept === 'string')
      reply.header('cache-control', kept.replace(/\bpublic\b/, 'private'));
  });
  server.options('/*', { schema: { hide: true } }, async (request, reply) => {
    const wanted = request.headers['access-control-request-method'] ?? 'GET';
    const path = request.url.split('?')[0]!;
    const readable =
      wanted === 'GET' || wanted === 'HEAD' || (wanted === 'POST' && READ_ONLY_POST_ROUTES.test(path));
    if (readable) {
      reply
        .header('access-control-allow-methods', 'GET, HEAD, POST')
        .header(
          'access-control-allow-headers',
          'accept, authorization, content-type, range, if-none-match, last-event-id, x-request-id, tilewright-seq',
        )
        .header('access-control-max-age', '86400');
    }
    return reply.code(204).send();
  });
}

/** 403 for a token that opens less, 401 for a wrong one or none. */
function sendUnauthorized(reply: FastifyReply, given: string | undefined, isReader: boolean): never {
  if (isReader) {
    challenge(reply, 'error="insufficient_scope", scope="write"');
    throw insufficientScope();
  }
  challenge(reply, given === undefined ? undefined : 'error="invalid_token"');
  throw unauthorized();
}

function limitRate(rate: RateLimit, request: FastifyRequest, reply: FastifyReply): void {
  const wait = rate.take(request.ip);
  if (wait === 0) return;
  reply.header('retry-after', Math.ceil(wait));
  throw rateLimited(rate.perSecond);
}
