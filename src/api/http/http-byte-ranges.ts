/** Byte ranges (RFC 9110, section 14). */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { rangeNotSatisfiable } from '../errors.js';

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
  // The stream is empty because without a body fastify would set the length to 0.
  if (request.method === 'HEAD') return reply.send(Readable.from([]));
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
