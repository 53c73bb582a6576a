/**
 * Answers of routes: conditional requests, so that a client does not download a version again (RFC 9110, section 13), byte ranges
 * (section 14), incomplete answers, and clients that disconnect.
 */

import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PartialAnswer } from '../query/index.js';
import { clientGone, otherVersion, rangeNotSatisfiable } from './errors.js';

/** The ETag of an answer that may be compressed: weak, because the bytes depend on the encoding. */
export const weakEtag = (digest: string) => `W/"${digest}"`;

/** Sets the ETag. Returns true and sets the status 304 if the client has this version. */
export function notModified(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  reply.header('etag', etag);
  // If-None-Match compares weakly (section 13.1.2).
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  const cachedTags = request.headers['if-none-match']?.split(',').map(opaque);
  if (!cachedTags?.includes(opaque(etag)) && !cachedTags?.includes('*')) return false;
  reply.code(304);
  return true;
}

/** Throws TW_API_PRECONDITION if `If-Match` names other versions only. `etag` is strong, and so is the comparison (section 13.1.1). */
export function checkIfMatch({ headers }: FastifyRequest, etag: string): void {
  const expectedTags = headers['if-match']?.split(',').map((tag) => tag.trim());
  if (expectedTags && !expectedTags.includes(etag) && !expectedTags.includes('*')) throw otherVersion(etag);
}

/** The body of an answer to HEAD. It is a stream, because without one fastify would set the length to 0. */
export const noBody = () => Readable.from([]);

interface RangedFile {
  etag: string;
  bytes: number;
  /** Bytes from `start` up to and including `end`. */
  read(start: number, end: number): Readable;
}

/** Sends the requested range, or the entire file. Throws TW_API_RANGE. */
export function sendRanged(
  request: FastifyRequest,
  reply: FastifyReply,
  { etag, bytes, read }: RangedFile,
): FastifyReply {
  const ifRange = request.headers['if-range'];
  // RFC 9110, section 14.2: ranges apply to GET only.
  const isRanged = request.method === 'GET' && (ifRange === undefined || ifRange === etag);
  const range = isRanged ? parseRange(request.headers.range, bytes) : null;
  if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${bytes}`);
    throw rangeNotSatisfiable(request.headers.range ?? '', bytes);
  }
  const { start, end } = range ?? { start: 0, end: bytes - 1 };
  if (range) reply.code(206).header('content-range', `bytes ${start}-${end}/${bytes}`);
  reply.header('content-length', end - start + 1);
  if (request.method === 'HEAD') return reply.send(noBody());
  return reply.send(read(start, end));
}

/** Parses one range (RFC 9110, section 14). Returns null for several ranges or another unit: the RFC allows to send the entire file. */
function parseRange(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'unsatisfiable' | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return null;
  if (match[1] === '') {
    const suffix = Number(match[2]);
    return suffix === 0 ? 'unsatisfiable' : { start: Math.max(0, size - suffix), end: size - 1 };
  }
  const start = Number(match[1]);
  const end = match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[2] !== '' && Number(match[2]) < start) return null;
  return start >= size ? 'unsatisfiable' : { start, end };
}

/** Members that mark an answer as incomplete. No members if the answer is complete. */
export function partialMembers({ unanswered }: PartialAnswer) {
  return unanswered && { partial: true, unansweredSlots: unanswered };
}

/** A signal that is aborted when the answer is sent or the client has closed the connection, so that work for it can end. */
export function untilDisconnected(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  onDisconnect(reply, () => gone.abort(clientGone()));
  return gone.signal;
}

/**
 * Calls `callback` once, when the answer is sent or the client has closed the connection. Calls it immediately if that has already
 * happened: a response emits `close` only once, and a handler that awaited something may register its listener too late.
 */
export function onDisconnect({ raw, request }: FastifyReply, callback: () => void): void {
  if (raw.destroyed || raw.closed || request.raw.socket.destroyed) callback();
  else raw.once('close', callback);
}
