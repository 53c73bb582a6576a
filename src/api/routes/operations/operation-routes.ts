import type { RouteGroup } from '../../api-services.js';
import { notReady } from '../../errors.js';
import { baseUrl } from '../../http/index.js';
import { FORMAT_QUERY, PROBLEM_TYPE, problemDocument } from '../../plugins/index.js';
import { describeWithTag, fileResponse, jsonResponse } from '../../schemas/index.js';
import { METRICS_TYPE, prometheusMetrics } from './operations-metrics-response.js';
import { DependencyChecks } from './operations-readiness.js';

const describe = describeWithTag('operations');

/** `/health`, `/ready`, `/metrics` and `/openapi.json`. */
export const operationRoutes: RouteGroup = async (server, { services }) => {
  const dependencies = new DependencyChecks(services);
  server.get(
    '/health',
    {
      // A supervisor of the process has no token.
      config: { open: true },
      ...describe('State of the node, its counts and its errors', {
        200: jsonResponse('Health', 'The node is up'),
      }),
    },
    async () => ({
      status: 'ok',
      node: services.nodeId,
      version: services.version,
      ...(await services.storage.stats()),
    }),
  );

  server.get(
    '/ready',
    {
      config: { open: true },
      ...describe('Readiness of the node; in a cluster, its slots must be loaded', {
        200: jsonResponse('Ready', 'The node is ready'),
        503: jsonResponse('NotReady', 'The node is not ready', PROBLEM_TYPE),
      }),
    },
    async (request, reply) => {
      const checks = await dependencies.states();
      if (!services.cluster || services.cluster.cluster.isReady) return { status: 'ready', checks };
      const problem = problemDocument(notReady(), request.id, request.url);
      return reply
        .code(503)
        .type(PROBLEM_TYPE)
        .header('cache-control', 'no-store')
        .send({ ...problem, checks });
    },
  );

  server.get(
    '/metrics',
    describe('Metrics of the node for Prometheus', { 200: fileResponse('The figures', 'text/plain') }),
    async (_request, reply) => {
      reply.type(METRICS_TYPE);
      return prometheusMetrics(services, dependencies);
    },
  );

  server.get('/openapi.json', { schema: { hide: true, querystring: FORMAT_QUERY } }, async (request, reply) =>
    // A Buffer, because fastify would add a charset to text, and clients compare this type as it is written.
    reply
      .header('content-type', 'application/vnd.oai.openapi+json;version=3.0')
      .send(
        Buffer.from(
          JSON.stringify({ ...(await server.openApiDocument()), servers: [{ url: baseUrl(request) }] }),
        ),
      ),
  );
};
