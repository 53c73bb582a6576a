/** Durations of requests by route, for `/metrics`. */
import type { FastifyInstance } from 'fastify';
import type { NodeMetrics } from '../../metrics/index.js';

/** The label of requests that match no route: their URLs are not bounded. */
const NO_ROUTE = 'none';

/** Called before the routes are registered. */
export function registerRequestMetrics(server: FastifyInstance, { requestSeconds }: NodeMetrics): void {
  server.addHook('onResponse', async ({ method, routeOptions, is404 }, reply) => {
    const route = is404 ? NO_ROUTE : (routeOptions.url ?? NO_ROUTE);
    requestSeconds.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / 1e3);
  });
}
