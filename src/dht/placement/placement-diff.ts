/** The difference between two placements, in slots and bytes. */
import { type Placement, replicationTarget, stayingOwners } from './placement.js';
import type { BytesBySlot } from './placement-changes.js';
import { targetShares } from './placement-target-shares.js';

export interface Amount {
  slots: number;
  bytes: number;
}

export interface NodeDiff {
  id: string;
  /** The fraction of all bytes, counted once for each owner, that it should hold; 0 to 1. */
  share: number;
  before: Amount;
  after: Amount;
  /** The slots that it must load. */
  takes: Amount;
  /** The slots that it need not hold any more. */
  gives: Amount;
}

export interface PlacementDiff {
  /** Sorted by node id. */
  nodes: NodeDiff[];
  moved: Amount;
  /** Minimum number of bytes that any plan must move to reach the amounts after the change. */
  least: number;
  /** Standard deviation of bytes / share over the nodes with a share, percent of the mean. */
  deviation: { before: number; after: number };
}

export function diffPlacements(before: Placement, after: Placement, bytes: BytesBySlot): PlacementDiff {
  const shares = targetFractions(after);
  const nodes = after.nodes.map(({ id }): NodeDiff => {
    const none = () => ({ slots: 0, bytes: 0 });
    return {
      id,
      share: shares.get(id) ?? 0,
      before: none(),
      after: none(),
      takes: none(),
      gives: none(),
    };
  });
  const byId = new Map(nodes.map((node) => [node.id, node]));
  after.slots.forEach((owners, slot) => {
    const had = stayingOwners(before.slots[slot]!);
    const has = stayingOwners(owners);
    const count = (ids: string[], part: 'before' | 'after' | 'takes' | 'gives') => {
      for (const id of ids) {
        const amount = byId.get(id)?.[part];
        if (!amount) continue;
        amount.slots++;
        amount.bytes += bytes[slot] ?? 0;
      }
    };
    count(had, 'before');
    count(has, 'after');
    count(
      has.filter((id) => !had.includes(id)),
      'takes',
    );
    count(
      had.filter((id) => !has.includes(id)),
      'gives',
    );
  });
  const sum = (of: (node: NodeDiff) => number) => nodes.reduce((total, node) => total + of(node), 0);
  return {
    nodes,
    moved: { slots: sum(({ takes }) => takes.slots), bytes: sum(({ takes }) => takes.bytes) },
    least: sum((node) => Math.max(0, node.after.bytes - node.before.bytes)),
    deviation: {
      before: deviation(nodes, (node) => node.before.bytes),
      after: deviation(nodes, (node) => node.after.bytes),
    },
  };
}

/** The fraction of all bytes that each node should hold, 0 to 1. Draining nodes are missing. */
export function targetFractions({ nodes, owners }: Placement): Map<string, number> {
  const active = nodes.filter(({ draining }) => !draining);
  const { copies } = replicationTarget(active, owners);
  if (copies === 0) return new Map();
  const shares = targetShares(active, copies);
  return new Map(active.map(({ id }, i) => [id, shares[i]! / copies]));
}

function deviation(nodes: readonly NodeDiff[], bytesOf: (node: NodeDiff) => number): number {
  const each = nodes.filter(({ share }) => share > 0).map((node) => bytesOf(node) / node.share);
  const mean = each.reduce((a, b) => a + b, 0) / each.length;
  if (!(mean > 0)) return 0;
  return (100 * Math.sqrt(each.reduce((sum, x) => sum + (x - mean) ** 2, 0) / each.length)) / mean;
}
