import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance } from 'fastify';
import { type AccessOptions, registerAuth } from './plugins/auth.js';
import { registerBodyTimeout } from './plugins/body-timeout.js';
import { registerCompression } from './plugins/compression.js';
import { registerFormatParameter } from './plugins/format-parameter.js';
import { registerJsonBodyLimits } from './plugins/json-body-limits.js';
import { earlyErrorOptions, MAX_BODY_BYTES, registerErrorHandler } from './plugins/problem-details.js';
import { registerReadYourWrites } from './plugins/read-your-writes.js';
import { registerRequestId, requestIdOptions } from './plugins/request-id.js';
import { registerRequestMetrics } from './plugins/request-metrics.js';
import { schemaController } from './plugins/validation.js';
import { type ProxyOptions, readProxyOptions } from './proxy-options.js';
import { clusterRoutes } from './routes/cluster/routes.js';
import { docsPageRoutes } from './routes/docs-page/routes.js';
import { ingestRoutes } from './routes/ingest/routes.js';
import { mapPageRoutes } from './routes/map-page/routes.js';
import { mapRoutes } from './routes/maps/map-routes.js';
import { seriesRoutes } from './routes/maps/series-routes.js';
import { spectraRoutes } from './routes/maps/spectra-routes.js';
import { modelRoutes } from './routes/models/routes.js';
import { operationRoutes } from './routes/operations/routes.js';
import { processRoutes } from './routes/processes/routes.js';
import { sceneRoutes } from './routes/scenes/routes.js';
import { similarRoutes } from './routes/similar/routes.js';
import { stacRoutes } from './routes/stac/routes.js';
import { tileRoutes } from './routes/tiles/routes.js';
import { trainingRoutes } from './routes/training/routes.js';
import { publishedSchema } from './schemas/builders.js';
import { describeOperations, securitySchemes } from './schemas/operations.js';
import { registerResponseSchemas } from './schemas/responses.js';
import type { Services } from './services.js';

export interface ServerOptions extends AccessOptions, ProxyOptions {
  /** Structured request log on stderr. */
  log: boolean;
}

/** How long the head of a request may take, ms. `registerBodyTimeout` looks after the body. */
const HEADERS_TIMEOUT_MS = 60_000;

/** A colormap of 16,384 characters fits into an address, percent-encoded. */
const MAX_HEAD_BYTES = 65_536;

/** The HTTP API over the given services; not yet listening. Throws what `readProxyOptions` throws. */
export async function buildServer(services: Services, options: ServerOptions): Promise<FastifyInstance> {
  const { publicUrl, trustProxy } = readProxyOptions(options, options.token ?? options.readToken);
  const server = Fastify({
    ...(trustProxy && { trustProxy }),
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: true },
    // A missing Host is answered as every other fault, by `registerErrorHandler`.
    http: { headersTimeout: HEADERS_TIMEOUT_MS, requireHostHeader: false, maxHeaderSize: MAX_HEAD_BYTES },
    // Node's limit would cover the body too, and uploads take as long as they take.
    requestTimeout: 0,
    ...earlyErrorOptions,
    ...requestIdOptions,
    return503OnClosing: false,
    // Longer than clients keep idle connections, so that none is closed under a request.
    keepAliveTimeout: 75_000,
    forceCloseConnections: 'idle',
    logger: options.log ? { level: 'info', stream: process.stderr } : false,
    schemaController,
  });
  server.decorate('publicUrl', publicUrl);
  // Nodes greet and survey each other all the time: of their requests the log has those alone that fail.
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
  await server.register(swagger, {
    transform: ({ schema, url }) => ({ schema: publishedSchema(schema), url }),
    refResolver: { buildLocalReference: (json) => String(json.$id) },
    openapi: {
      openapi: '3.0.3',
      info: {
        title: 'tilewright',
        description: 'Geohash tiles of satellite scenes: STAC search, tile files, jobs and models.',
        version: services.version,
      },
      components: { securitySchemes },
    },
  });
  await server.register(stacRoutes, { services });
  await server.register(tileRoutes, { services });
  await server.register(mapRoutes, { services });
  await server.register(mapPageRoutes);
  await server.register(docsPageRoutes);
  await server.register(seriesRoutes, { services });
  await server.register(spectraRoutes, { services });
  await server.register(ingestRoutes, { services });
  await server.register(sceneRoutes, { services });
  await server.register(processRoutes, { services });
  await server.register(trainingRoutes, { services });
  await server.register(modelRoutes, { services });
  await server.register(similarRoutes, { services });
  await server.register(clusterRoutes, { services });
  await server.register(operationRoutes, { services });
  return server;
}
