/** Gives every request an id, from the client if it sends one. The id is in the answer, in problem documents and in the log. */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';

export const REQUEST_ID_HEADER = 'x-request-id';

/** Excludes characters that could break a log line or a header. */
const VALID_REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

/** For `Fastify(options)`. */
export const requestIdOptions = {
  requestIdHeader: false as const,
  genReqId: ({ headers }: { headers: Record<string, string | string[] | undefined> }): string => {
    const given = headers[REQUEST_ID_HEADER];
    return typeof given === 'string' && VALID_REQUEST_ID.test(given) ? given : randomUUID();
  },
};

export function registerRequestId(server: FastifyInstance): void {
  server.addHook('onRequest', async (request, reply) => {
    reply.header(REQUEST_ID_HEADER, request.id);
  });
}
