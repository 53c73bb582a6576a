/** Conditional requests (RFC 9110, section 13): a client does not download a version again that it already has. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { otherVersion } from '../errors.js';

/** The ETag of an answer that may be compressed: weak, because the bytes depend on the encoding. */
export const weakEtag = (digest: string) => `W/"${digest}"`;

/** Sets the ETag. Returns true and sets the status 304 if the client has this version. */
export function notModified(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  reply.header('etag', etag);
  // If-None-Match compares weakly (section 13.1.2).
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  const known = request.headers['if-none-match']?.split(',').map(opaque);
  if (!known?.includes(opaque(etag)) && !known?.includes('*')) return false;
  reply.code(304);
  return true;
}

/** Throws TW_API_PRECONDITION if `If-Match` names other versions only. `etag` is strong, and so is the comparison (section 13.1.1). */
export function checkIfMatch({ headers }: FastifyRequest, etag: string): void {
  const wanted = headers['if-match']?.split(',').map((tag) => tag.trim());
  if (wanted && !wanted.includes(etag) && !wanted.includes('*')) throw otherVersion(etag);
}
