/** What other nodes send. Each message is signed, and has a checksum. */
import { crc32 } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  CHECKSUM,
  GREETING_PATH,
  holdingOf,
  MESSAGE_TYPE,
  OWNERS_PATH,
  type OwnerRequest,
  SURVEY_PATH,
  verifySignature,
} from '../../../dht/index.js';
import { COUNT } from '../../../json-schema.js';
import { badRequest } from '../../errors.js';
import { onGone } from '../../http/on-disconnect.js';
import type { ClusterService } from '../../services.js';
import { sendToNode } from './reply-with-checksum.js';
import { workRoutes } from './task-routes.js';
import { ownUsage, USAGE_PATH } from './usage.js';

/** They hold filters, which are small. */
const MESSAGE_LIMIT = 4 * 2 ** 20;

/** Nodes of other versions may send more. */
const questionSchema = {
  type: 'object',
  required: ['kind', 'slots', 'seq', 'wait'],
  properties: {
    kind: { type: 'string' },
    slots: { type: 'string' },
    seq: COUNT,
    wait: { type: 'number', minimum: 0 },
  },
};

export async function messageRoutes(
  server: FastifyInstance,
  { cluster, owners, secret, shares }: ClusterService,
): Promise<void> {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    MESSAGE_TYPE,
    { parseAs: 'buffer', bodyLimit: MESSAGE_LIMIT },
    async ({ method, url: path, headers }: FastifyRequest, body: Buffer) => {
      verifySignature(secret, { method, path, body }, headers.authorization);
      if (headers[CHECKSUM] !== String(crc32(body))) throw badRequest('the message is damaged');
      try {
        return JSON.parse(body.toString()) as unknown;
      } catch (error) {
        throw badRequest.because(error, 'the message is not JSON');
      }
    },
  );
  const internal = { config: { internal: true }, schema: { hide: true } };
  // A node that starts asks whether its messages are taken.
  server.post(GREETING_PATH, internal, async (_request, reply) => sendToNode(reply, {}));
  server.post<{ Body: OwnerRequest }>(
    OWNERS_PATH,
    { ...internal, schema: { hide: true, body: questionSchema } },
    async ({ body }, reply) => {
      const gone = new AbortController();
      onGone(reply, () => gone.abort(badRequest('the node that asked has closed the connection')));
      return sendToNode(reply, await owners.reply(body, gone.signal));
    },
  );
  server.post(SURVEY_PATH, internal, async (_request, reply) =>
    sendToNode(reply, holdingOf(cluster.replica)),
  );
  server.post(USAGE_PATH, internal, async (_request, reply) => sendToNode(reply, ownUsage()));
  await workRoutes(server, { shares });
}
