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

/** Answers with the range that the request asks for, or the whole file. Throws TW_API_RANGE. */
export function sendRanged(
  request: FastifyRequest,
  reply: FastifyReply,
  { etag, bytes, read }: RangedFile,
): FastifyReply {
  const ifRange = request.headers['if-range'];
  // RFC 9110, section 14.2: ranges are for GET alone.
  const isRanged = request.method === 'GET' && (ifRange === undefined || ifRange === etag);
  const range = isRanged ? parseRange(request.headers.range, bytes) : null;
  if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${bytes}`);
    throw rangeNotSatisfiable(request.headers.range ?? '', bytes);
  }
  const { start, end } = range ?? { start: 0, end: bytes - 1 };
  if (range) reply.code(206).header('content-range', `bytes ${start}-${end}/${bytes}`);
  reply.header('content-length', end - start + 1);
  // An empty stream: for no body at all, fastify would say that the length is 0.
  if (request.method === 'HEAD') return reply.send(Readable.from([]));
  return reply.send(read(start, end));
}

/** One range of RFC 9110 section 14; several ranges or another unit mean the whole file (null), as the RFC allows. */
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
