/** Every error as `application/problem+json` (RFC 9457) with a stable code. */
import type { FastifyInstance } from 'fastify';
import { TilewrightError } from '../errors.js';
import { badRequest, internal, notFound } from './errors.js';

function known(error: unknown): TilewrightError | null {
  if (error instanceof TilewrightError) return error;
  // Fastify's own errors: validation, bodies too large, unknown media types. Their messages name the field.
  const { statusCode, message } = error as { statusCode?: number; message?: string };
  if (statusCode && statusCode < 500) {
    return new TilewrightError(badRequest.code, statusCode, badRequest(message ?? 'unknown').message);
  }
  return null;
}

export function answerProblems(server: FastifyInstance): void {
  server.setErrorHandler((error, request, reply) => {
    const problem = known(error) ?? internal.because(error);
    if (problem.status >= 500) request.log.error({ err: error }, problem.message);
    return reply.code(problem.status).type('application/problem+json').send({
      type: 'about:blank',
      title: problem.code,
      status: problem.status,
      code: problem.code,
      detail: problem.message,
      instance: request.url,
    });
  });
  server.setNotFoundHandler((request) => {
    throw notFound(`route ${request.method} ${request.url.split('?')[0]}`);
  });
}
