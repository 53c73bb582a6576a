/** Every request has an id, the client's own where it gave one: it is in the answer, in problem documents and in the log. */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';

export const REQUEST_ID = 'x-request-id';

/** Nothing that could break a line of a log or a header. */
const SANE = /^[\w.:/+=-]{1,128}$/;

/** For `Fastify(options)`. */
export const requestIds = {
  requestIdHeader: false as const,
  genReqId: ({ headers }: { headers: Record<string, string | string[] | undefined> }): string => {
    const given = headers[REQUEST_ID];
    return typeof given === 'string' && SANE.test(given) ? given : randomUUID();
  },
};

export function answerRequestIds(server: FastifyInstance): void {
  server.addHook('onRequest', async (request, reply) => {
    reply.header(REQUEST_ID, request.id);
  });
}
