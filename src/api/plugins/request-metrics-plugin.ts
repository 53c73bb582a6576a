/** Durations of requests by route, for `/metrics`. */
import type { FastifyInstance } from 'fastify';
import type { NodeMetrics } from '../../metrics/index.js';

/** The label of requests that match no route: their URLs are not bounded. */
const NO_ROUTE = 'none';

/** Methods with a label of their own. Clients may send some thirty others, and each would add series for as long as the node runs. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'PUT', 'PATCH']);
const OTHER_METHOD = 'other';

/** Called before the routes are registered. */
export function registerRequestMetrics(server: FastifyInstance, { requestSeconds }: NodeMetrics): void {
  server.addHook('onResponse', async ({ method, routeOptions, is404 }, reply) => {
    const labels = {
      method: METHODS.has(method) ? method : OTHER_METHOD,
      route: is404 ? NO_ROUTE : (routeOptions.url ?? NO_ROUTE),
      status: reply.statusCode,
    };
    requestSeconds.observe(labels, reply.elapsedTime / 1e3);
  });
}
