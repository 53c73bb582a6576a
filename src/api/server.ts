import Fastify, { type FastifyInstance } from 'fastify';
import type { Services } from './api-services.js';
import { type ProxyOptions, readProxyOptions } from './http/proxy-options.js';
import {
  type AccessOptions,
  earlyErrorOptions,
  MAX_BODY_BYTES,
  registerAuth,
  registerBodyTimeout,
  registerCompression,
  registerErrorHandler,
  registerFormatParameter,
  registerJsonBodyLimits,
  registerReadYourWrites,
  registerRequestId,
  registerRequestMetrics,
  requestIdOptions,
  schemaController,
} from './plugins/index.js';
import { ROUTE_GROUPS } from './routes/index.js';
import { describeOperations, registerOpenApiDocument, registerResponseSchemas } from './schemas/index.js';

export interface ServerOptions extends AccessOptions, ProxyOptions {
  /** Structured request log on stderr. */
  log: boolean;
}

/** How long the headers of a request may take. `registerBodyTimeout` limits the time of the body. */
const HEADERS_TIMEOUT_MS = 60_000;

/** Leaves room for a percent-encoded colormap of 16,384 characters in the URL. */
const MAX_HEAD_BYTES = 65_536;

/** Builds the HTTP server, which does not listen yet. Throws the errors of `readProxyOptions`. */
export async function buildServer(services: Services, options: ServerOptions): Promise<FastifyInstance> {
  const { publicUrl, trustProxy } = readProxyOptions(options, options.token ?? options.readToken);
  const server = Fastify({
    ...(trustProxy && { trustProxy }),
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: true },
    // `registerErrorHandler` answers a missing Host with a problem document, like other errors.
    http: { headersTimeout: HEADERS_TIMEOUT_MS, requireHostHeader: false, maxHeaderSize: MAX_HEAD_BYTES },
    // Node's limit would include the body, and the time of an upload is not limited.
    requestTimeout: 0,
    ...earlyErrorOptions,
    ...requestIdOptions,
    return503OnClosing: false,
    // The timeout is longer than that of clients, so that the server does not close a connection while a request is on its way.
    keepAliveTimeout: 75_000,
    forceCloseConnections: 'idle',
    logger: options.log ? { level: 'info', stream: process.stderr } : false,
    schemaController,
  });
  server.decorate('publicUrl', publicUrl);
  // Nodes query each other all the time, so the log contains only the failed requests between nodes.
  server.addHook('onRoute', (route) => {
    if (route.config?.internal) route.logLevel = 'warn';
  });
  registerRequestId(server);
  registerRequestMetrics(server, services.metrics);
  registerErrorHandler(server);
  registerJsonBodyLimits(server);
  registerBodyTimeout(server);
  registerAuth(server, options);
  if (services.cluster) registerReadYourWrites(server, services.cluster.cluster);
  registerCompression(server);
  registerResponseSchemas(server);
  describeOperations(server, options);
  registerFormatParameter(server);
  registerOpenApiDocument(server, services.version, schemaController);
  for (const routes of ROUTE_GROUPS) await server.register(routes, { services });
  return server;
}
