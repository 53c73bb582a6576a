/** The HTTP server: plugins, schemas and routes in this order, behind a reverse proxy or not, and its address while the node starts. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import Fastify from 'fastify';
import { messageOf } from '../errors.js';
import type { NodeMetrics } from '../metrics/index.js';
import { badProxy, badPublicUrl, cannotListen, notReady, publicUrlWithoutToken } from './errors.js';
import { type AccessOptions, registerAuth } from './plugins/auth.js';
import { registerBodyTimeout, registerJsonBodyLimits } from './plugins/bodies.js';
import { registerCompression } from './plugins/compression.js';
import { registerReadYourWrites, registerRequestId, requestIdOptions } from './plugins/headers.js';
import { limitConnections } from './plugins/limits.js';
import {
  earlyErrorOptions,
  MAX_BODY_BYTES,
  PROBLEM_TYPE,
  problemDocument,
  registerErrorHandler,
} from './plugins/problems.js';
import { registerReaders } from './plugins/readers.js';
import { registerFormatParameter, schemaController } from './plugins/validation.js';
import { clusterRoutes } from './routes/cluster.js';
import { ingestRoutes } from './routes/ingest.js';
import { mapRoutes } from './routes/maps.js';
import { modelRoutes } from './routes/models.js';
import { operationRoutes } from './routes/operations.js';
import { docsPageRoutes, mapPageRoutes } from './routes/pages.js';
import { processRoutes } from './routes/processes.js';
import { sceneRoutes } from './routes/scenes.js';
import { seriesRoutes } from './routes/series.js';
import { similarRoutes } from './routes/similar.js';
import { stacRoutes } from './routes/stac.js';
import { subscriptionRoutes } from './routes/subscriptions.js';
import { tileRoutes } from './routes/tiles.js';
import { trainingRoutes } from './routes/training.js';
import { describeOperations, registerOpenApiDocument, registerResponseSchemas } from './schemas/openapi.js';
import type { RouteGroup, Services } from './services.js';

/**
 * Options for a reverse proxy in front of the server: the address at which clients reach it, and the proxies whose `X-Forwarded-*`
 * headers are trusted. Without these options these headers are ignored.
 */
export interface ProxyOptions {
  /** Base of all links in answers, such as `https://example.org/tiles`. Default: the host of the request. */
  publicUrl?: string;
  /** Proxies whose `X-Forwarded-For`, `-Proto` and `-Host` are trusted: IP addresses, CIDR ranges, or `loopback`. */
  trustProxy?: string[];
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** Throws TW_API_PUBLIC_URL. */
function readPublicUrl(given: string): URL {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw badPublicUrl(given, 'it is not an http or https URL');
  if (/[?#]/.test(given)) throw badPublicUrl(given, 'it has a query or a fragment');
  if (url.username || url.password) throw badPublicUrl(given, 'it contains a user or a password');
  return url;
}

/** Accepts those values of fastify's `trustProxy` that are addresses; not a number of hops or `true`. */
function namesAddresses(given: string): boolean {
  if (given === 'loopback') return true;
  const [address = '', bits, ...rest] = given.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  if (bits === undefined) return true;
  // fastify refuses 0 bits.
  return /^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= (version === 4 ? 32 : 128);
}

/**
 * Checks the options. `token` is undefined if clients need none. Returns the base of links without a trailing slash, and the trusted
 * proxies. Throws TW_API_PUBLIC_URL, TW_API_OPEN_PUBLIC_URL, TW_API_TRUST_PROXY.
 */
export function readProxyOptions(
  { publicUrl, trustProxy = [] }: ProxyOptions,
  token: string | undefined,
): ProxyOptions {
  // Environment variables are often set to an empty text.
  const addresses = trustProxy.map((one) => one.trim()).filter((one) => one !== '');
  for (const given of addresses) if (!namesAddresses(given)) throw badProxy(given);
  const proxies = addresses.length > 0 ? { trustProxy: addresses } : {};
  if (publicUrl === undefined || publicUrl.trim() === '') return proxies;
  const url = readPublicUrl(publicUrl);
  if (!token && !LOOPBACK_HOST.test(url.hostname)) throw publicUrlWithoutToken(publicUrl);
  return { publicUrl: url.href.replace(/\/+$/, ''), ...proxies };
}

/** The label of requests that match no route: their URLs are not bounded. */
const NO_ROUTE = 'none';

/** Methods with a label of their own. Clients may send some thirty others, and each would add series for as long as the node runs. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'PUT', 'PATCH']);
const OTHER_METHOD = 'other';

/** Measures requests by route, for `/metrics`. Called before the routes are registered. */
function registerRequestMetrics(server: FastifyInstance, { requestSeconds }: NodeMetrics): void {
  server.addHook('onResponse', async ({ method, routeOptions, is404 }, reply) => {
    const labels = {
      method: METHODS.has(method) ? method : OTHER_METHOD,
      route: is404 ? NO_ROUTE : (routeOptions.url ?? NO_ROUTE),
      status: reply.statusCode,
    };
    requestSeconds.observe(labels, reply.elapsedTime / 1e3);
  });
}

/** All groups of routes, in the order of the OpenAPI document. */
const ROUTE_GROUPS: RouteGroup[] = [
  stacRoutes,
  tileRoutes,
  mapRoutes,
  mapPageRoutes,
  docsPageRoutes,
  seriesRoutes,
  ingestRoutes,
  sceneRoutes,
  processRoutes,
  subscriptionRoutes,
  trainingRoutes,
  modelRoutes,
  similarRoutes,
  clusterRoutes,
  operationRoutes,
];

export interface ServerOptions extends AccessOptions, ProxyOptions {
  /** Structured request log on stderr. */
  log: boolean;
  /** Messages of other nodes arrive at an address of their own. */
  hasClusterListener?: boolean;
}

/** How long the headers of a request may take, and how often that is checked. `registerBodyTimeout` limits the time of the body. */
const HEADERS_TIMEOUT_MS = 20_000;
const HEADERS_CHECK_MS = 5000;

/** Leaves room for a percent-encoded colormap of 16,384 characters in the URL. */
const MAX_HEAD_BYTES = 65_536;

const HTTP_OPTIONS = {
  headersTimeout: HEADERS_TIMEOUT_MS,
  connectionsCheckingInterval: HEADERS_CHECK_MS,
  // `registerErrorHandler` answers a missing Host with a problem document, like other errors.
  requireHostHeader: false,
  maxHeaderSize: MAX_HEAD_BYTES,
  // Node's limit would include the body, and the time of an upload is not limited.
  requestTimeout: 0,
  // The timeout is longer than that of clients, so that the server does not close a connection while a request is on its way.
  keepAliveTimeout: 75_000,
};

/** A listener of its own for messages of other nodes, which the same routes answer. It closes with the server. */
function createClusterListener(server: FastifyInstance): Server {
  const listener = createServer(HTTP_OPTIONS, (request, response) => server.routing(request, response));
  listener.on('clientError', earlyErrorOptions.clientErrorHandler);
  server.addHook('onClose', async () => {
    if (!listener.listening) return;
    const closed = once(listener, 'close');
    listener.close();
    await closed;
  });
  return listener;
}

/** Builds the HTTP server, which does not listen yet. Throws the errors of `readProxyOptions`. */
export async function buildServer(services: Services, options: ServerOptions): Promise<FastifyInstance> {
  const { publicUrl, trustProxy } = readProxyOptions(options, options.token ?? options.readToken);
  const server = Fastify({
    ...(trustProxy && { trustProxy }),
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: true },
    ...HTTP_OPTIONS,
    http: HTTP_OPTIONS,
    ...earlyErrorOptions,
    ...requestIdOptions,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    logger: options.log ? { level: 'info', stream: process.stderr } : false,
    schemaController,
  });
  server.decorate('publicUrl', publicUrl);
  const listener = options.hasClusterListener ? createClusterListener(server) : server.server;
  server.decorate('clusterListener', listener);
  // Nodes query each other all the time, so the log contains only the failed requests between nodes.
  server.addHook('onRoute', (route) => {
    if (route.config?.internal) route.logLevel = 'warn';
  });
  limitConnections(server, trustProxy);
  registerRequestId(server);
  registerRequestMetrics(server, services.metrics);
  registerErrorHandler(server);
  registerJsonBodyLimits(server);
  registerBodyTimeout(server);
  registerAuth(server, options);
  if (services.cluster) registerReadYourWrites(server, services.cluster.cluster);
  registerCompression(server);
  registerReaders(server);
  registerResponseSchemas(server);
  describeOperations(server, options);
  registerFormatParameter(server);
  registerOpenApiDocument(server, services.version, schemaController);
  for (const routes of ROUTE_GROUPS) await server.register(routes, { services });
  return server;
}

/**
 * Listens on an address while the server starts, so that an unusable address is detected before the node joins a cluster. Answers 503
 * TW_API_NOT_READY until the returned function is called. Throws TW_API_CANNOT_LISTEN.
 */
export async function reservePort(host: string, port: number): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    const body = problemDocument(notReady(), randomUUID(), request.url);
    response.writeHead(503, { 'content-type': PROBLEM_TYPE, connection: 'close' });
    response.end(JSON.stringify(body));
  });
  try {
    await once(server.listen(port, host), 'listening');
  } catch (error) {
    throw cannotListen.because(error, host, port, messageOf(error));
  }
  // If the start fails, the process ends.
  server.unref();
  return async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
}
