/** The cluster: its nodes and who owns what, and the messages of other nodes. */
import { crc32 } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { CHECKSUM, locate, MESSAGE_TYPE, type Placement, SLOTS, verifySignature } from '../../dht/index.js';
import type { GridName } from '../../geocode/index.js';
import { answerShare, SHARE_PATH, type ShareRequest } from '../../query/index.js';
import { badRequest, notFound } from '../errors.js';
import { answers } from '../schemas/answers.js';
import type { ClusterService, Services } from '../services.js';
import { workRoutes } from './work-routes.js';

/** Messages between nodes hold filters, which are small. */
const MESSAGE_LIMIT = 4 * 2 ** 20;

export async function clusterRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { cluster: service, nodeId } = services;
  const tags = ['cluster'];

  const nodes = { summary: 'Nodes, and how many slots each owns', tags };
  server.get(
    '/cluster/nodes',
    { schema: { ...nodes, response: { 200: answers('Nodes', 'The nodes') } } },
    async () =>
      service
        ? { nodes: nodesOf(service) }
        : { nodes: [{ id: nodeId, slots: SLOTS, running: true, draining: false }] },
  );

  const placement = { summary: 'The owners of every slot', tags };
  server.get(
    '/cluster/placement',
    { schema: { ...placement, response: { 200: answers('Placement', 'The placement') } } },
    async (): Promise<Placement | { nodes: { id: string }[]; owners: number }> =>
      service?.cluster.placement ?? { nodes: [{ id: nodeId }], owners: 1 },
  );

  const location = { summary: 'The owners of a cell', tags };
  server.get<{ Params: { grid: string; geocode: string } }>(
    '/cluster/locate/:grid/:geocode',
    { schema: { ...location, response: { 200: answers('Location', 'Where its tiles are') } } },
    async ({ params: { grid, geocode } }) => {
      if (grid !== 'geohash' && grid !== 'quadtile')
        throw badRequest(`there is no grid ${grid}; use geohash or quadtile`);
      if (service) return locate(service.cluster.placement, grid as GridName, geocode);
      return { grid, geocode, owners: [{ node: nodeId, state: 'available' }] };
    },
  );

  const drain = { summary: 'Lets a node give its slots to others', tags };
  server.post<{ Params: { id: string } }>(
    '/cluster/nodes/:id/drain',
    { config: { write: true }, schema: { ...drain, response: { 200: answers('Drained', 'The node') } } },
    async ({ params: { id } }) => {
      if (!service) throw notFound(`a cluster with a node ${id}`);
      await service.cluster.drain(id);
      return { id, draining: true };
    },
  );

  if (service) await server.register((scope) => messages(scope, services, service));
}

/** Those that have slots and those that run, by id. */
function nodesOf({ cluster: { placement, nodes } }: ClusterService) {
  const counts = new Map<string, number>();
  for (const owners of placement.slots)
    for (const { node } of owners) counts.set(node, (counts.get(node) ?? 0) + 1);
  const ids = new Set([...placement.nodes, ...nodes].map(({ id }) => id));
  return [...ids].sort().map((id) => {
    const member = nodes.find((node) => node.id === id);
    return {
      id,
      ...(member && {
        url: member.url,
        zone: member.zone,
        weight: member.weight,
        software: member.software,
      }),
      slots: counts.get(id) ?? 0,
      running: member !== undefined,
      draining: placement.nodes.find((node) => node.id === id)?.draining ?? false,
    };
  });
}

/** What other nodes send. Each message is signed, and has a checksum. */
async function messages(
  server: FastifyInstance,
  { storage }: Services,
  { cluster, secret, shares }: ClusterService,
): Promise<void> {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    MESSAGE_TYPE,
    { parseAs: 'buffer', bodyLimit: MESSAGE_LIMIT },
    async ({ method, url: path, headers }: FastifyRequest, body: Buffer) => {
      verifySignature(secret, { method, path, body }, headers.authorization);
      if (headers[CHECKSUM] !== String(crc32(body))) throw badRequest('the message is damaged');
      return JSON.parse(body.toString()) as unknown;
    },
  );
  server.post<{ Body: ShareRequest }>(
    SHARE_PATH,
    { config: { internal: true }, schema: { hide: true } },
    async ({ body }, reply) => {
      const bytes = Buffer.from(JSON.stringify(await answerShare(storage, cluster, body)));
      return reply.header(CHECKSUM, crc32(bytes)).type('application/json').send(bytes);
    },
  );
  await workRoutes(server, { shares });
}
