/** Conditional requests (RFC 9110, section 13): a client that has a version of something need not get it again. */
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Sets the ETag. True if the client has this version: the answer is 304 then. */
export function isKnown(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  reply.header('etag', etag);
  const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (!known?.includes(etag) && !known?.includes('*')) return false;
  reply.code(304);
  return true;
}
