/** Messages from other nodes. Each message is signed and has a checksum. */
import { crc32 } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  CHECKSUM_HEADER,
  HANDSHAKE_PATH,
  MESSAGE_TYPE,
  nodeStats,
  OWNER_QUERY_PATH,
  type OwnerRequest,
  STATS_PATH,
  TIME_HEADER,
  verifySignature,
} from '../../../dht/index.js';
import { COUNT } from '../../../utils/json-schema.js';
import type { ClusterService } from '../../api-services.js';
import { badRequest } from '../../errors.js';
import { onDisconnect } from '../../http/index.js';
import { replyWithChecksum } from './cluster-message-reply.js';
import { scenePartRoutes } from './cluster-scene-part-routes.js';
import { taskRoutes } from './cluster-task-routes.js';
import { nodeUsage, USAGE_PATH } from './cluster-usage-response.js';

/** Messages contain filters, which are small. */
const MAX_MESSAGE_BYTES = 4 * 2 ** 20;

/** Nodes of other versions may send more members. */
const querySchema = {
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
  { cluster, owners, secret, tasks, sceneParts }: ClusterService,
): Promise<void> {
  // Also on refusals, so that the sender learns how far the clocks are apart.
  server.addHook('onSend', async (_request, reply) => {
    reply.header(TIME_HEADER, Date.now());
  });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    MESSAGE_TYPE,
    { parseAs: 'buffer', bodyLimit: MAX_MESSAGE_BYTES },
    async ({ method, url: path, headers }: FastifyRequest, body: Buffer) => {
      verifySignature(secret, { method, path, body }, headers.authorization);
      if (headers[CHECKSUM_HEADER] !== String(crc32(body))) throw badRequest('the message is damaged');
      try {
        return JSON.parse(body.toString()) as unknown;
      } catch (error) {
        throw badRequest.because(error, 'the message is not JSON');
      }
    },
  );
  const internal = { config: { internal: true }, schema: { hide: true } };
  // A node that starts checks that the others accept its messages.
  server.post(HANDSHAKE_PATH, internal, async (_request, reply) => replyWithChecksum(reply, {}));
  server.post<{ Body: OwnerRequest }>(
    OWNER_QUERY_PATH,
    { ...internal, schema: { hide: true, body: querySchema } },
    async ({ body }, reply) => {
      const gone = new AbortController();
      onDisconnect(reply, () => gone.abort(badRequest('the requesting node has closed the connection')));
      return replyWithChecksum(reply, await owners.handle(body, gone.signal));
    },
  );
  server.post(STATS_PATH, internal, async (_request, reply) =>
    replyWithChecksum(reply, nodeStats(cluster.replica)),
  );
  server.post(USAGE_PATH, internal, async (_request, reply) => replyWithChecksum(reply, nodeUsage()));
  await taskRoutes(server, { tasks });
  await scenePartRoutes(server, { sceneParts });
}
