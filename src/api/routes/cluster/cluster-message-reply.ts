import { crc32 } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import { CHECKSUM_HEADER } from '../../../dht/index.js';

/** Answers a message of another node, with a checksum. */
export function replyWithChecksum(reply: FastifyReply, answer: unknown): FastifyReply {
  const bytes = Buffer.from(JSON.stringify(answer));
  return reply.header(CHECKSUM_HEADER, crc32(bytes)).type('application/json').send(bytes);
}
