import { type OwnerState, targetFractions } from '../../../dht/index.js';
import type { ClusterService } from '../../api-services.js';

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
      ...(url !== undefined && { url }),
      zone,
      weight,
      ...(member && { software: member.software }),
      slots: states.initializing + states.available + states.leaving,
      states,
      bytes,
      share: shares.get(id) ?? 0,
      ...(own !== undefined && { lag: head - own }),
      ...(clockOffset !== undefined && { clockOffset }),
      running: member !== undefined,
      draining: placed?.draining ?? false,
    };
  });
}
