import type { FastifyRequest } from 'fastify';

/** The address by which the client reached the server, without a slash at its end: links in answers start with it. */
export function baseUrl(request: FastifyRequest): string {
  return `${request.protocol}://${request.host}`;
}
