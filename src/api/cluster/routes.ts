/** The cluster: its nodes and who owns what, and the messages of other nodes. */
import { crc32 } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  CHECKSUM,
  GREETING_PATH,
  holdingOf,
  locate,
  MESSAGE_TYPE,
  type Moves,
  OWNERS_PATH,
  type OwnerRequest,
  type OwnerState,
  type Placement,
  SLOTS,
  SURVEY_PATH,
  sharesOf,
  verifySignature,
} from '../../dht/index.js';
import type { GridName } from '../../geocode/index.js';
import { badRequest, notFound } from '../errors.js';
import { answers } from '../schemas/answers.js';
import type { ClusterService, Services } from '../services.js';
import { sendToNode } from './reply.js';
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
        ? { nodes: await nodesOf(service) }
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

  const rejoin = { summary: 'Lets a node that gives its slots away take slots again', tags };
  server.post<{ Params: { id: string } }>(
    '/cluster/nodes/:id/join',
    { config: { write: true }, schema: { ...rejoin, response: { 200: answers('Drained', 'The node') } } },
    async ({ params: { id } }) => {
      if (!service) throw notFound(`a cluster with a node ${id}`);
      await service.cluster.rejoin(id);
      return { id, draining: false };
    },
  );

  const rebalanceBody = {
    type: 'object',
    nullable: true,
    additionalProperties: false,
    properties: { dryRun: { type: 'boolean', description: 'Tell what would move, and move nothing' } },
  };
  const rebalance = { summary: 'Spreads the slots anew by the bytes of their tiles', tags };
  server.post<{ Body: { dryRun?: boolean } | null }>(
    '/cluster/rebalance',
    {
      config: { write: true },
      schema: {
        ...rebalance,
        body: rebalanceBody,
        response: { 200: answers('Rebalanced', 'What moves') },
      },
    },
    async ({ body }): Promise<Moves & { dryRun: boolean }> => {
      if (!service) throw notFound('a cluster');
      const dryRun = body?.dryRun ?? false;
      return { dryRun, ...(await service.cluster.rebalance({ dryRun })) };
    },
  );

  if (service) await server.register((scope) => messages(scope, service));
}

/** Those that have slots and those that run, by id. Who does not answer soon is listed without what it alone knows. */
async function nodesOf({ cluster }: ClusterService) {
  const { placement, nodes } = cluster;
  const { bytes, applied } = await cluster.survey();
  const head = Math.max(0, ...applied.values());
  const shares = sharesOf(placement);
  const held = new Map<string, { bytes: number; states: Record<OwnerState, number> }>();
  const heldBy = (node: string) => {
    const known = held.get(node) ?? { bytes: 0, states: { initializing: 0, available: 0, leaving: 0 } };
    held.set(node, known);
    return known;
  };
  placement.slots.forEach((owners, slot) => {
    for (const { node, state } of owners) {
      const one = heldBy(node);
      one.states[state]++;
      one.bytes += bytes[slot]!;
    }
  });
  const ids = new Set([...placement.nodes, ...nodes].map(({ id }) => id));
  return [...ids].sort().map((id) => {
    const member = nodes.find((node) => node.id === id);
    const { states, bytes } = heldBy(id);
    const own = applied.get(id);
    return {
      id,
      ...(member && {
        url: member.url,
        zone: member.zone,
        weight: member.weight,
        software: member.software,
      }),
      slots: states.initializing + states.available + states.leaving,
      states,
      bytes,
      share: shares.get(id) ?? 0,
      ...(own !== undefined && { lag: head - own }),
      running: member !== undefined,
      draining: placement.nodes.find((node) => node.id === id)?.draining ?? false,
    };
  });
}

/** What other nodes send. Each message is signed, and has a checksum. */
async function messages(
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
      return JSON.parse(body.toString()) as unknown;
    },
  );
  const internal = { config: { internal: true }, schema: { hide: true } };
  // A node that starts asks whether its messages are taken.
  server.post(GREETING_PATH, internal, async (_request, reply) => sendToNode(reply, {}));
  server.post<{ Body: OwnerRequest }>(OWNERS_PATH, internal, async ({ body }, reply) =>
    sendToNode(reply, await owners.reply(body)),
  );
  server.post(SURVEY_PATH, internal, async (_request, reply) =>
    sendToNode(reply, await holdingOf(cluster.replica)),
  );
  await workRoutes(server, { shares });
}
