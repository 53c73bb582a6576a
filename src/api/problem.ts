/** Every error as `application/problem+json` (RFC 9457) with a stable code. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { messageOf, TilewrightError } from '../errors.js';
import { badRequest, internal, notFound, stopping, tooLarge, tooSlow } from './errors.js';

const TYPE = 'application/problem+json';

/** Bodies are descriptions of work; files have a limit of their own. */
export const BODY_LIMIT = 1 << 20;

function problemOf(error: unknown): TilewrightError {
  if (error instanceof TilewrightError) return error;
  // Fastify's own errors: validation, unknown media types, bad addresses. Their messages name the field.
  const { statusCode, code } = error as { statusCode?: number; code?: string };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return tooLarge(BODY_LIMIT);
  if (!statusCode || statusCode >= 500) return internal.because(error);
  return new TilewrightError(
    badRequest.code,
    statusCode,
    badRequest(messageOf(error) + unknownName(error)).message,
  );
}

/** What validation says of a member that no schema has, without its name. */
function unknownName(error: unknown): string {
  const name = (error as FastifyError).validation?.[0]?.params['additionalProperty'];
  return typeof name === 'string' ? `: "${name}" is not known here` : '';
}

function documentOf({ code, status, message }: TilewrightError, instance?: string) {
  return { type: 'about:blank', title: code, status, code, detail: message, instance };
}

function answer(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(error);
  if (problem.status >= 500) request.log.error({ err: error }, problem.message);
  return reply.code(problem.status).type(TYPE).send(documentOf(problem, request.url));
}

/** For `Fastify(options)`: errors that arise before a request has found its route. */
export const earlyErrors = {
  frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    answer(error, request, reply);
  },
  /** What is no HTTP, or did not come in time; there is a socket only. */
  clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    const problem = malformed(error.code);
    const body = JSON.stringify(documentOf(problem));
    const head = `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\ncontent-type: ${TYPE}\r\n`;
    const end = `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`;
    if (socket.writable) socket.end(head + end);
    socket.destroySoon();
  },
};

function malformed(code = ''): TilewrightError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return tooSlow();
  if (code !== 'HPE_HEADER_OVERFLOW') return badRequest('it is not well-formed HTTP');
  return new TilewrightError(badRequest.code, 431, badRequest('its headers are too long').message);
}

export function answerProblems(server: FastifyInstance): void {
  server.setErrorHandler(answer);
  server.setNotFoundHandler((request) => {
    throw notFound(`route ${request.method} ${request.url.split('?')[0]}`);
  });
  // Requests that come on open connections while the server stops.
  let closing = false;
  server.addHook('preClose', async () => {
    closing = true;
  });
  server.addHook('onRequest', async () => {
    if (closing) throw stopping();
  });
}
