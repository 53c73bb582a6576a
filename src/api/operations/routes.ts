import type { FastifyInstance } from 'fastify';
import { answers } from '../schemas/answers.js';
import type { Services } from '../services.js';

/** `/health` and `/openapi.json`. */
export async function operationRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  server.get(
    '/health',
    {
      schema: {
        summary: 'Is the node up, and what does it hold',
        tags: ['operations'],
        response: { 200: answers('Health', 'It is') },
      },
    },
    async () => ({
      status: 'ok',
      node: services.nodeId,
      version: services.version,
      ...(await services.storage.stats()),
    }),
  );

  server.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) =>
    // A Buffer, because fastify would add a charset to text, and clients compare this type as it is written.
    reply
      .header('content-type', 'application/vnd.oai.openapi+json;version=3.0')
      .send(Buffer.from(JSON.stringify(server.swagger()))),
  );
}
