import { crc32 } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import { CHECKSUM } from '../../../dht/index.js';

/** Answers the message of another node, with a checksum. */
export function sendToNode(reply: FastifyReply, answer: unknown): FastifyReply {
  const bytes = Buffer.from(JSON.stringify(answer));
  return reply.header(CHECKSUM, crc32(bytes)).type('application/json').send(bytes);
}
