import { type OwnerState, targetFractions } from '../../../dht/index.js';
import type { ClusterService } from '../../api-services.js';

/** A node of a cluster, as `/cluster/nodes` lists it. */
export type ClusterNode = Awaited<ReturnType<typeof listNodes>>[number];

/** Lists nodes that own slots and nodes that run, by id. If a node does not answer soon, its `lag` is missing. */
export async function listNodes({ cluster, peers }: ClusterService) {
  const { placement, nodes } = cluster;
  const { bytes, applied } = await cluster.stats();
  const head = Math.max(0, ...applied.values());
  const shares = targetFractions(placement);
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
    const placed = placement.nodes.find((node) => node.id === id);
    const { url } = cluster.peer(id) ?? {};
    const { zone, weight } = member ?? placed!;
    const { states, bytes } = heldBy(id);
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
