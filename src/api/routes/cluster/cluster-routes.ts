/** The cluster: its nodes, and the owners of slots and cells. */
import type { FastifyInstance } from 'fastify';
import { locate, type Placement, type PlacementDiff, SLOTS } from '../../../dht/index.js';
import { type GridName, gridByName } from '../../../grid/index.js';
import { documented } from '../../../json-schema.js';
import { isoTime } from '../../../query/index.js';
import type { Services } from '../../api-services.js';
import { resourceNotFound } from '../../errors.js';
import { closedObject, jsonResponse } from '../../schemas/index.js';
import { messageRoutes } from './cluster-message-routes.js';
import { listNodes } from './cluster-nodes-response.js';
import { acceptTrainingConnections } from './cluster-training-connections.js';
import { clusterUsage } from './cluster-usage-response.js';

export async function clusterRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { cluster: service, nodeId } = services;
  const tags = ['cluster'];

  const nodes = { summary: 'Nodes, and how many slots each owns', tags };
  server.get(
    '/cluster/nodes',
    { schema: { ...nodes, response: { 200: jsonResponse('Nodes', 'The nodes') } } },
    async () => {
      if (!service) return { nodes: [{ id: nodeId, slots: SLOTS, running: true, draining: false }] };
      const { disconnectedSince } = service.cluster;
      return {
        nodes: await listNodes(service),
        ...(disconnectedSince !== undefined && { asOf: isoTime(disconnectedSince) }),
      };
    },
  );

  let pending: ReturnType<typeof clusterUsage> | undefined;
  const usage = { summary: 'CPU time, memory and bytes sent by each node that runs', tags };
  server.get(
    '/cluster/usage',
    { schema: { ...usage, response: { 200: jsonResponse('Usage', 'The usage of the nodes') } } },
    () => {
      // Concurrent requests share one answer, so that many clients do not multiply the requests to the other nodes.
      pending ??= clusterUsage(services).finally(() => {
        pending = undefined;
      });
      return pending;
    },
  );

  const placement = { summary: 'The owners of every slot', tags };
  server.get(
    '/cluster/placement',
    { schema: { ...placement, response: { 200: jsonResponse('Placement', 'The placement') } } },
    async (): Promise<Placement | { nodes: { id: string }[]; owners: number }> =>
      service?.cluster.placement ?? { nodes: [{ id: nodeId }], owners: 1 },
  );

  const cellName = documented(
    { type: 'string' },
    { pattern: '^([0-9b-hjkmnp-z]{1,9}|[0-3]{1,24})$', description: 'A code of the grid' },
  );
  const location = { summary: 'The owners of a cell', tags };
  server.get<{ Params: { grid: GridName; geocode: string } }>(
    '/cluster/locate/:grid/:geocode',
    {
      schema: {
        ...location,
        params: {
          type: 'object',
          properties: { grid: { enum: ['geohash', 'quadtile'] }, geocode: cellName },
        },
        response: { 200: jsonResponse('Location', 'Where its tiles are') },
      },
    },
    async ({ params: { grid, geocode } }) => {
      gridByName(grid).key(geocode);
      if (service) return locate(service.cluster.placement, grid, geocode);
      return { grid, geocode, owners: [{ node: nodeId, state: 'available' }] };
    },
  );

  const drain = { summary: 'Drains a node: other nodes take over its slots', tags };
  server.post<{ Params: { id: string } }>(
    '/cluster/nodes/:id/drain',
    { config: { write: true }, schema: { ...drain, response: { 200: jsonResponse('Drained', 'The node') } } },
    async ({ params: { id } }) => {
      if (!service) throw resourceNotFound(`a cluster with a node ${id}`);
      await service.cluster.drain(id);
      return { id, draining: true };
    },
  );

  const rejoin = { summary: 'Stops draining a node, so that it receives slots again', tags };
  server.post<{ Params: { id: string } }>(
    '/cluster/nodes/:id/join',
    {
      config: { write: true },
      schema: { ...rejoin, response: { 200: jsonResponse('Drained', 'The node') } },
    },
    async ({ params: { id } }) => {
      if (!service) throw resourceNotFound(`a cluster with a node ${id}`);
      await service.cluster.rejoin(id);
      return { id, draining: false };
    },
  );

  const rebalanceBody = closedObject(
    { dryRun: { type: 'boolean', description: 'Report what would move, without moving it' } },
    { nullable: true },
  );
  const rebalance = { summary: 'Redistributes the slots by the bytes of their tiles', tags };
  server.post<{ Body: { dryRun?: boolean } | null }>(
    '/cluster/rebalance',
    {
      config: { write: true },
      schema: {
        ...rebalance,
        body: rebalanceBody,
        response: { 200: jsonResponse('Rebalanced', 'What moves') },
      },
    },
    async ({ body }): Promise<PlacementDiff & { dryRun: boolean }> => {
      if (!service) throw resourceNotFound('a cluster');
      const dryRun = body?.dryRun ?? false;
      return { dryRun, ...(await service.cluster.rebalance({ dryRun })) };
    },
  );

  if (!service) return;
  await server.register((scope) => messageRoutes(scope, service));
  acceptTrainingConnections(server.server, service.rendezvous);
}
