/**
 * Authentication and access. A token of the scope `write` allows everything, a token of the scope `read` allows reads. Reads need no
 * token if the server has no read token, and files of the program itself never need one. Web pages of other origins may read on a server
 * with a token; without one, only those of `cors`. A server without any token is bound to loopback. It then answers only requests whose
 * Host is loopback, and other origins may not write, so that a web page in a browser on this machine cannot use it by DNS rebinding or
 * cross-site requests. The rate of the requests of each client is limited.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Signatures } from '../../dht/index.js';
import {
  bindWithoutToken,
  foreignHost,
  foreignOrigin,
  insufficientScope,
  notBetweenNodes,
  rateLimited,
  resourceNotFound,
  unauthorized,
} from '../errors.js';

/** Clients whose buckets are kept, the most recent ones. */
const MAX_CLIENTS = 10_000;
/** A full bucket holds the tokens of this many seconds. */
const BURST_SECONDS = 5;

interface Bucket {
  tokens: number;
  /** Time of the last update, ms. */
  at: number;
}

/**
 * Token buckets: they allow a burst of requests and limit the mean rate of each client. Invariants: a bucket holds at most
 * BURST_SECONDS * perSecond tokens; `buckets` are in the order of their last use.
 */
export class RateLimit {
  private readonly buckets = new Map<string, Bucket>();

  /** 0 for no limit. */
  constructor(readonly perSecond: number) {}

  /** Takes a token and returns 0, or returns the seconds until the next token. `now` in ms. */
  take(client: string, now = performance.now()): number {
    if (this.perSecond === 0) return 0;
    const full = BURST_SECONDS * this.perSecond;
    const { tokens, at } = this.buckets.get(client) ?? { tokens: full, at: now };
    const available = Math.min(full, tokens + ((now - at) / 1000) * this.perSecond);
    const passes = available >= 1;
    this.buckets.delete(client);
    this.buckets.set(client, { tokens: passes ? available - 1 : available, at: now });
    if (this.buckets.size > MAX_CLIENTS) this.buckets.delete(this.buckets.keys().next().value!);
    return passes ? 0 : (1 - available) / this.perSecond;
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that change something or start work. */
    write?: boolean;
    /** True for routes without data of the store. They need no token. */
    open?: boolean;
    /** True for messages between nodes. They are signed, and need no token. */
    internal?: boolean;
  }
  interface FastifyInstance {
    /** Accepts messages of other nodes: the server itself, or a listener that accepts nothing else. */
    clusterListener: Server;
  }
  interface FastifyRequest {
    /** True if the request carries the secret of the data folder's lock, which only the user who runs the server can read. */
    isOwner: boolean;
    /** True if the request may read the data of the store, also on a route that is open to all. */
    mayRead: boolean;
    /** Set for a request that another node forwards: the address by which the client reached that node. */
    forwardedBaseUrl: string | undefined;
  }
}

export interface AccessOptions {
  /** Allows everything. */
  token?: string;
  /** Allows reads. If it is set, reads need it or `token`. */
  readToken?: string;
  /** The secret in the data folder's lock file, which only the user who runs the server can read. */
  ownerSecret: string;
  /** Origins whose web pages may read; `*` stands for all. Default: all if there is a token, else none. */
  cors?: string[];
  /** Mean requests a second of one address; 0 for no limit. Default: 200 if there is a token, else 0. */
  rateLimit?: number;
  /** Checks messages of other nodes, and requests that they forward after they have checked the token. */
  signatures?: Signatures;
}

/** Header of a request that a node forwards: the address by which the client reached that node. */
export const FORWARDED_BASE_URL_HEADER = 'tilewright-door';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;
const DEFAULT_RATE_LIMIT = 200;

/** POST routes that only read. */
const READ_ONLY_POST_ROUTES =
  /^\/(search|timeseries|spectra|similar|training\/(place|check)|(collections\/[^/]+\/)?aggregate)\/?$/;

/** Throws TW_API_OPEN_BIND if other machines could reach the server without a token. */
export function requireSafeBinding(host: string, token: string | undefined): void {
  const loopback = host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
  if (!loopback && !token) throw bindWithoutToken(host);
}

function bearer(request: FastifyRequest): string | undefined {
  return /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
}

/** True if a node of the cluster forwards the request; such requests have no body. Throws the errors of `Signatures.verify`. */
function isForwarded({ raw, headers }: FastifyRequest, signatures: Signatures | undefined): boolean {
  if (headers[FORWARDED_BASE_URL_HEADER] === undefined || !signatures) return false;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (hasBody) return false;
  signatures.verify(raw);
  return true;
}

/** Compares digests, so that the time that it takes reveals nothing about the secret. */
function secretsEqual(given: string | undefined, secret: string | undefined): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return given !== undefined && !!secret && timingSafeEqual(digest(given), digest(secret));
}

/** RFC 6750, section 3: `error` says why a token was refused. */
function challenge(reply: FastifyReply, error?: string): void {
  reply.header('www-authenticate', `Bearer realm="tilewright"${error ? `, ${error}` : ''}`);
}

export function registerAuth(server: FastifyInstance, options: AccessOptions): void {
  const { token, readToken, ownerSecret } = options;
  const guarded = Boolean(token || readToken);
  const origins = options.cors ?? (guarded ? ['*'] : []);
  const rate = new RateLimit(options.rateLimit ?? (guarded ? DEFAULT_RATE_LIMIT : 0));
  server.decorateRequest('isOwner', false);
  server.decorateRequest('mayRead', false);
  server.decorateRequest('forwardedBaseUrl', undefined);
  const ofNodes = new WeakSet<Socket>();
  server.clusterListener.on('connection', (socket) => ofNodes.add(socket));
  const isShared = server.clusterListener === server.server;
  server.addHook('onRequest', async (request, reply) => {
    const mayBeNode = isShared || ofNodes.has(request.raw.socket);
    if (request.routeOptions.config.internal) {
      if (!mayBeNode) throw resourceNotFound(`route ${request.method} ${request.url} at this address`);
      options.signatures!.verify(request.raw);
      return;
    }
    if (mayBeNode && isForwarded(request, options.signatures)) {
      request.forwardedBaseUrl = String(request.headers[FORWARDED_BASE_URL_HEADER]);
      return;
    }
    if (mayBeNode && !isShared) throw notBetweenNodes();
    const host = request.headers.host ?? '';
    if (!guarded) for (const name of [host, request.host]) if (!LOOPBACK.test(name)) throw foreignHost(name);
    const given = bearer(request);
    request.isOwner = secretsEqual(given, ownerSecret);
    const mayWrite = request.isOwner || secretsEqual(given, token);
    const mayRead = mayWrite || secretsEqual(given, readToken) || !readToken;
    request.mayRead = mayRead;
    const { write = false, open = false } = request.routeOptions.config;
    if (!write && allowOrigin(origins, request, reply)) {
      reply.header(
        'access-control-expose-headers',
        'accept-ranges, content-length, content-range, etag, link, location, x-request-id, retry-after, tilewright-seq',
      );
    }
    if (!request.isOwner) limitRate(rate, request, reply);
    // Browsers send a preflight request without the token.
    if (request.method === 'OPTIONS' || mayWrite) return;
    if (write) {
      if (guarded) sendUnauthorized(reply, given, secretsEqual(given, readToken));
      const { origin } = request.headers;
      if (origin !== undefined && !LOOPBACK.test(origin.replace(/^https?:\/\//, '')))
        throw foreignOrigin(origin);
    } else if (!mayRead && !open) sendUnauthorized(reply, given, false);
  });
  // A shared cache may send public answers to clients without a token (RFC 9111, section 3.5).
  server.addHook('onSend', async (_request, reply) => {
    if (!readToken) return;
    const control = reply.getHeader('cache-control');
    reply.header(
      'cache-control',
      typeof control === 'string' ? control.replace(/\bpublic\b/, 'private') : 'private',
    );
  });
  server.options('/*', { schema: { hide: true } }, async (request, reply) => {
    const wanted = request.headers['access-control-request-method'] ?? 'GET';
    const path = request.url.split('?')[0]!;
    const readable =
      wanted === 'GET' || wanted === 'HEAD' || (wanted === 'POST' && READ_ONLY_POST_ROUTES.test(path));
    if (readable && origins.length > 0) {
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

/** Lets a web page read the answer if its origin is one of `origins`. Returns false if it is not. */
function allowOrigin(origins: readonly string[], { headers }: FastifyRequest, reply: FastifyReply): boolean {
  if (origins.length === 0) return false;
  if (origins.includes('*')) reply.header('access-control-allow-origin', '*');
  else {
    reply.header('vary', 'origin');
    if (headers.origin === undefined || !origins.includes(headers.origin)) return false;
    reply.header('access-control-allow-origin', headers.origin);
  }
  return true;
}

/** Throws 403 for a read token, 401 for a wrong or missing token. */
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
