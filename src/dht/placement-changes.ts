/**
 * Changes of the placement, and the difference between two placements. Each change returns the next placement, which moves as few slots as
 * the change needs, or the same object if nothing changes. `bytes` has the measured size of each slot; slots without a size are counted
 * instead.
 */
import { isDeepStrictEqual } from 'node:util';
import { lastNode, unknownNode } from './errors.js';
import {
  isHandoverComplete,
  type Owner,
  type Placement,
  type PlacementNode,
  stayingOwners,
} from './placement.js';
import { Rebalancer, targetFractions, UNASSIGNED } from './rebalancer.js';

export type NewNode = Omit<PlacementNode, 'draining'>;

/** Bytes by slot. */
export type BytesBySlot = ArrayLike<number>;

const NO_BYTES: BytesBySlot = [];

/**
 * Adds a node, or changes its weight or zone. Slots move only to this node, unless it was already active. A draining node gets the slots
 * back that it still answers for, without loading them.
 */
export function addNode(placement: Placement, { id, zone, weight }: NewNode, bytes = NO_BYTES): Placement {
  const known = placement.nodes.find((node) => node.id === id);
  const isActive = known?.draining === false;
  if (isActive && known.zone === zone && known.weight === weight) return placement;
  return reassign(placement, withNode(placement.nodes, { id, zone, weight, draining: false }), bytes, {
    ownersToKeep: known?.draining ? ownersWithResumed(id) : stayingOwners,
    mayReceive: isActive ? () => true : (one) => one === id,
  });
}

/** Removes a dead node: its slots get other owners, and the living owners keep theirs. An unknown node changes nothing. */
export function removeNode(placement: Placement, node: string, bytes = NO_BYTES): Placement {
  const nodes = placement.nodes.filter(({ id }) => id !== node);
  return nodes.length === placement.nodes.length ? placement : reassign(placement, nodes, bytes);
}

/**
 * Drains a node: others get its slots, and it answers for them until the others have loaded them. It stays in the placement until it
 * is removed. Throws TW_DHT_UNKNOWN_NODE, TW_DHT_LAST_NODE.
 */
export function drainNode(placement: Placement, node: string, bytes = NO_BYTES): Placement {
  const nodes = withDraining(placement.nodes, node);
  if (nodes.every((one) => one.draining)) throw lastNode(node);
  return reassign(placement, nodes, bytes);
}

/** Moves slots until every node holds the fraction of all bytes that matches its weight, as closely as slots allow. */
export function rebalance(placement: Placement, bytes = NO_BYTES): Placement {
  return reassign(placement, placement.nodes, bytes, { mayReceive: () => true });
}

/** Marks slots that a node has loaded as available. Slots that it no longer owns are ignored. */
export function markAvailable(placement: Placement, node: string, slots: Iterable<number>): Placement {
  return withSlots(placement, slots, (owners) =>
    owners.map((owner) =>
      owner.node === node && owner.state === 'initializing' ? { node, state: 'available' } : owner,
    ),
  );
}

/** Removes a leaving owner from slots. Slots that it does not leave, or must still answer for, stay unchanged. */
export function releaseSlots(placement: Placement, node: string, slots: Iterable<number>): Placement {
  return withSlots(placement, slots, (owners) =>
    isHandoverComplete(owners)
      ? owners.filter((owner) => owner.node !== node || owner.state !== 'leaving')
      : owners,
  );
}

// The owners of a slot that a change starts from

type OwnersToKeep = (owners: readonly Owner[]) => string[];

/** A node that is leaving a slot gets it back from an owner that has not loaded it. */
function ownersWithResumed(node: string): OwnersToKeep {
  return (owners) => {
    const ids = stayingOwners(owners);
    const replaced = owners.find(({ state }) => state === 'initializing')?.node;
    const isLeaving = owners.some((owner) => owner.node === node && owner.state === 'leaving');
    return isLeaving ? ids.map((id) => (id === replaced ? node : id)) : ids;
  };
}

// The step from one placement to the next

interface ChangeOptions {
  ownersToKeep?: OwnersToKeep;
  /** True for nodes that may also receive slots that no node must give up. */
  mayReceive?: (id: string) => boolean;
}

function reassign(
  placement: Placement,
  nodes: readonly PlacementNode[],
  bytes: BytesBySlot,
  { ownersToKeep = stayingOwners, mayReceive = () => false }: ChangeOptions = {},
): Placement {
  const active = nodes.filter((node) => !node.draining);
  const numbers = new Map(active.map(({ id }, number) => [id, number]));
  const assignment = placement.slots.map((owners) =>
    ownersToKeep(owners).map((id) => numbers.get(id) ?? UNASSIGNED),
  );
  const rebalancer = new Rebalancer(active, placement.owners, assignment, bytes);
  rebalancer.fill();
  const receivers = [...numbers.values()].filter((number) => mayReceive(active[number]!.id));
  if (receivers.length > 0) rebalancer.balance(receivers);
  const ids = new Set(nodes.map(({ id }) => id));
  const slots = placement.slots.map((owners, slot) => {
    const wanted = rebalancer.assignment[slot]!.map((number) => active[number]!.id);
    const isSame = owners.length === wanted.length && owners.every(({ node }, i) => node === wanted[i]);
    if (isSame && owners.every(({ state }) => state !== 'leaving')) return owners;
    return ownersAfter(
      owners.filter(({ node }) => ids.has(node)),
      wanted,
    );
  });
  return nextPlacement(placement, nodes, slots);
}

/** The owners of a slot after the change, given its living owners and its new holders. */
function ownersAfter(before: readonly Owner[], holders: readonly string[]): Owner[] {
  const staying = holders.map((node): Owner => {
    const state = before.find((owner) => owner.node === node)?.state ?? 'initializing';
    return { node, state: state === 'leaving' ? 'available' : state };
  });
  const leaving = before
    .filter(({ node, state }) => state !== 'initializing' && !holders.includes(node))
    .map(({ node }): Owner => ({ node, state: 'leaving' }));
  return [...staying, ...leaving];
}

function withSlots(
  placement: Placement,
  slots: Iterable<number>,
  change: (owners: readonly Owner[]) => readonly Owner[],
): Placement {
  const changed = [...placement.slots];
  for (const slot of slots) changed[slot] = change(changed[slot]!);
  return nextPlacement(placement, placement.nodes, changed);
}

/** The next version. Unchanged owner lists stay the same objects, and so does a placement without changes. */
function nextPlacement(
  placement: Placement,
  nodes: readonly PlacementNode[],
  changed: readonly (readonly Owner[])[],
): Placement {
  const slots = placement.slots.map((owners, slot) =>
    isDeepStrictEqual(owners, changed[slot]!) ? owners : changed[slot]!,
  );
  const isSame =
    isDeepStrictEqual(nodes, placement.nodes) &&
    slots.every((owners, slot) => owners === placement.slots[slot]);
  return isSame ? placement : { ...placement, version: placement.version + 1, nodes, slots };
}

/** Inserts a node, or replaces the node with the same id; the result is sorted by id. */
function withNode(nodes: readonly PlacementNode[], node: PlacementNode): PlacementNode[] {
  return [...nodes.filter(({ id }) => id !== node.id), node].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function withDraining(nodes: readonly PlacementNode[], id: string): PlacementNode[] {
  const node = nodes.find((one) => one.id === id);
  if (!node) throw unknownNode(id);
  return withNode(nodes, { ...node, draining: true });
}

interface Amount {
  slots: number;
  bytes: number;
}

interface NodeDiff {
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

/** The difference between two placements, in slots and bytes. */
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

function deviation(nodes: readonly NodeDiff[], bytesOf: (node: NodeDiff) => number): number {
  const each = nodes.filter(({ share }) => share > 0).map((node) => bytesOf(node) / node.share);
  const mean = each.reduce((a, b) => a + b, 0) / each.length;
  if (!(mean > 0)) return 0;
  return (100 * Math.sqrt(each.reduce((sum, x) => sum + (x - mean) ** 2, 0) / each.length)) / mean;
}
