/** Headers of all requests and answers: the id of the request, and the last commit, for clients that read their own writes. */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { type Cluster, replicaBehind } from '../../dht/index.js';
import { badRequest, commitNotApplied } from '../errors.js';

export const REQUEST_ID_HEADER = 'x-request-id';

/** Excludes characters that could break a log line or a header. */
const VALID_REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

/** For `Fastify(options)`. */
export const requestIdOptions = {
  requestIdHeader: false as const,
  genReqId: ({ headers }: { headers: Record<string, string | string[] | undefined> }): string => {
    const requestId = headers[REQUEST_ID_HEADER];
    return typeof requestId === 'string' && VALID_REQUEST_ID.test(requestId) ? requestId : randomUUID();
  },
};

/** Gives every request an id, from the client if it sends one. The id is in the answer, in problem documents and in the log. */
export function registerRequestId(server: FastifyInstance): void {
  server.addHook('onRequest', async (request, reply) => {
    reply.header(REQUEST_ID_HEADER, request.id);
  });
}

const SEQUENCE_HEADER = 'tilewright-seq';

/** How long a request waits for the commit that it names. */
const APPLY_TIMEOUT_MS = 5000;
const RETRY_AFTER_SECONDS = 1;

/**
 * Lets a client read its own writes through any node. Every answer names the last commit that the node has applied. A node answers a
 * request with this number after it has applied that commit. Call this after `registerAuth`, so that unauthorised requests do not wait. A
 * single node does not need it.
 */
export function registerReadYourWrites(server: FastifyInstance, { replica }: Cluster): void {
  server.addHook('onRequest', async ({ headers, routeOptions }, reply) => {
    const wanted = headers[SEQUENCE_HEADER];
    if (wanted === undefined || routeOptions.config.internal || routeOptions.config.open) return;
    if (!/^\d{1,15}$/.test(String(wanted)))
      throw badRequest(`the header Tilewright-Seq is not a number: ${wanted}`);
    await replica.waitForCommit(Number(wanted), APPLY_TIMEOUT_MS).catch((error) => {
      if (!replicaBehind.is(error)) throw error;
      reply.header('retry-after', RETRY_AFTER_SECONDS);
      throw commitNotApplied.because(error, Number(wanted), replica.applied);
    });
  });
  server.addHook('onSend', async ({ routeOptions }, reply) => {
    // By now the node has applied everything that the answer contains, and its own commit if it has written.
    if (!routeOptions.config.internal && !routeOptions.config.open)
      reply.header(SEQUENCE_HEADER, replica.applied);
  });
}
