/** The cluster: its nodes, and the owners of slots and cells. */

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import {
  locate,
  type OwnerState,
  type Placement,
  type PlacementDiff,
  SLOTS,
  targetFractions,
} from '../../dht/index.js';
import { TilewrightError } from '../../errors.js';
import { type GridName, gridByName } from '../../grid/index.js';
import { isoTime } from '../../query/index.js';
import type { Rendezvous } from '../../training/index.js';
import { documented } from '../../utils/json-schema.js';
import { resourceNotFound } from '../errors.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, jsonResponse } from '../schemas/openapi.js';
import type { ClusterService, RouteGroup } from '../services.js';
import { clusterUsage, messageRoutes } from './cluster-messages.js';

/** A node of a cluster, as `/cluster/nodes` lists it. */
export type ClusterNode = Awaited<ReturnType<typeof listNodes>>[number];

/** Lists nodes that own slots and nodes that run, by id. If a node does not answer soon, its `lag` is missing. */
async function listNodes({ cluster, peers }: ClusterService) {
  const { placement, nodes } = cluster;
  const { bytes, applied } = await cluster.stats();
  const head = Math.max(0, ...applied.values());
  const shares = targetFractions(placement);
  const usageByNode = new Map<string, { bytes: number; states: Record<OwnerState, number> }>();
  const usageOf = (node: string) => {
    const usage = usageByNode.get(node) ?? {
      bytes: 0,
      states: { initializing: 0, available: 0, leaving: 0 },
    };
    usageByNode.set(node, usage);
    return usage;
  };
  placement.slots.forEach((owners, slot) => {
    for (const { node, state } of owners) {
      const usage = usageOf(node);
      usage.states[state]++;
      usage.bytes += bytes[slot]!;
    }
  });
  const ids = new Set([...placement.nodes, ...nodes].map(({ id }) => id));
  return [...ids].sort().map((id) => {
    const member = nodes.find((node) => node.id === id);
    const placed = placement.nodes.find((node) => node.id === id);
    const { url } = cluster.peer(id) ?? {};
    const { zone, weight } = member ?? placed!;
    const { states, bytes } = usageOf(id);
    const own = applied.get(id);
    const clockOffset = peers.clockOffsets.get(id);
    return {
      id,
      url,
      zone,
      weight,
      software: member?.software,
      slots: states.initializing + states.available + states.leaving,
      states,
      /** Bytes of the tiles in its slots. */
      bytes,
      /** Target fraction of all bytes, 0 to 1. */
      share: shares.get(id) ?? 0,
      /** Commits that other nodes have applied and this node has not. */
      lag: own === undefined ? undefined : head - own,
      /** Seconds by which its clock is ahead of the clock of the answering node, if that is known. */
      clockOffset,
      running: member !== undefined,
      draining: placed?.draining ?? false,
    };
  });
}

/** Accepts connections from other nodes that train one model together with this node: signed CONNECT requests. */
function acceptTrainingConnections(server: Server, rendezvous: Rendezvous): void {
  server.on('connect', (request, socket) => {
    // The training itself handles errors of the connection.
    socket.on('error', () => undefined);
    try {
      rendezvous.accept(request, socket as Socket);
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      socket.end(`HTTP/1.1 ${error.status} ${error.code}\r\n\r\n`, () => socket.destroy());
    }
  });
}

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
  acceptTrainingConnections(server.clusterListener, service.rendezvous);
};
