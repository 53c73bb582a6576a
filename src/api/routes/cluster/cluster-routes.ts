/** The cluster: its nodes, and the owners of slots and cells. */
import { locate, type Placement, type PlacementDiff, SLOTS } from '../../../dht/index.js';
import { type GridName, gridByName } from '../../../grid/index.js';
import { isoTime } from '../../../query/index.js';
import { documented } from '../../../utils/json-schema.js';
import type { RouteGroup } from '../../api-services.js';
import { resourceNotFound } from '../../errors.js';
import { closedObject, describeWithTag, jsonResponse } from '../../schemas/index.js';
import { messageRoutes } from './cluster-message-routes.js';
import { listNodes } from './cluster-nodes-response.js';
import { acceptTrainingConnections } from './cluster-training-routes.js';
import { clusterUsage } from './cluster-usage-response.js';

const describe = describeWithTag('cluster');

export const clusterRoutes: RouteGroup = async (server, { services }) => {
  const { cluster: service, nodeId } = services;

  server.get(
    '/cluster/nodes',
    describe('Nodes, and how many slots each owns', { 200: jsonResponse('Nodes', 'The nodes') }),
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
  server.get(
    '/cluster/usage',
    describe('CPU time and memory of each running node, and the bytes that it has sent', {
      200: jsonResponse('Usage', 'The usage of the nodes'),
    }),
    () => {
      // Concurrent requests share one answer, so that many clients do not multiply the requests to the other nodes.
      pending ??= clusterUsage(services).finally(() => {
        pending = undefined;
      });
      return pending;
    },
  );

  server.get(
    '/cluster/placement',
    describe('The owners of every slot', { 200: jsonResponse('Placement', 'The placement') }),
    async (): Promise<Placement | { nodes: { id: string }[]; owners: number }> =>
      service?.cluster.placement ?? { nodes: [{ id: nodeId }], owners: 1 },
  );

  const cellName = documented(
    { type: 'string' },
    { pattern: '^([0-9b-hjkmnp-z]{1,9}|[0-3]{1,24})$', description: 'A code of the grid' },
  );
  server.get<{ Params: { grid: GridName; geocode: string } }>(
    '/cluster/locate/:grid/:geocode',
    describe(
      'The owners of a cell',
      { 200: jsonResponse('Location', 'Where its tiles are') },
      {
        params: {
          type: 'object',
          properties: { grid: { enum: ['geohash', 'quadtile'] }, geocode: cellName },
        },
      },
    ),
    async ({ params: { grid, geocode } }) => {
      gridByName(grid).key(geocode);
      if (service) return locate(service.cluster.placement, grid, geocode);
      return { grid, geocode, owners: [{ node: nodeId, state: 'available' }] };
    },
  );

  for (const [action, summary, draining] of [
    ['drain', 'Drains a node: other nodes take over its slots', true],
    ['join', 'Stops draining a node, so that it receives slots again', false],
  ] as const)
    server.post<{ Params: { id: string } }>(
      `/cluster/nodes/:id/${action}`,
      { ...describe(summary, { 200: jsonResponse('Drained', 'The node') }), config: { write: true } },
      async ({ params: { id } }) => {
        if (!service) throw resourceNotFound(`a cluster with a node ${id}`);
        await (draining ? service.cluster.drain(id) : service.cluster.rejoin(id));
        return { id, draining };
      },
    );

  const rebalanceBody = closedObject(
    { dryRun: { type: 'boolean', description: 'Report what would move, without moving it' } },
    { nullable: true },
  );
  server.post<{ Body: { dryRun?: boolean } | null }>(
    '/cluster/rebalance',
    {
      ...describe(
        'Redistributes the slots by the bytes of their tiles',
        { 200: jsonResponse('Rebalanced', 'What moves') },
        { body: rebalanceBody },
      ),
      config: { write: true },
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
};
