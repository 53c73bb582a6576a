/**
 * Changes of the placement. Each gives the next placement, with as little moved as the change needs, or the same object
 * where nothing changes. `bytes` has the measured bytes of each slot; slots without any count by their number.
 */
import { isDeepStrictEqual } from 'node:util';
import { lastNode, unknownNode } from '../errors.js';
import { isHandoverComplete, type Owner, type Placement, type PlacementNode } from './placement.js';
import { Rebalancer, UNASSIGNED } from './rebalancer.js';

export type NewNode = Omit<PlacementNode, 'draining'>;

/** Bytes by slot. */
export type BytesBySlot = ArrayLike<number>;

const NO_BYTES: BytesBySlot = [];

/**
 * A node joins, or comes with another weight or zone. Slots move only to it, unless it was known. One that drained gets
 * back, without loading it, what it still answers for.
 */
export function addNode(placement: Placement, { id, zone, weight }: NewNode, bytes = NO_BYTES): Placement {
  const known = placement.nodes.find((node) => node.id === id);
  const isActive = known?.draining === false;
  if (isActive && known.zone === zone && known.weight === weight) return placement;
  return reassign(placement, withNode(placement.nodes, { id, zone, weight, draining: false }), bytes, {
    ownersToKeep: known?.draining ? resumedOwnersOf(id) : remainingOwners,
    mayReceive: isActive ? () => true : (one) => one === id,
  });
}

/** A node is dead: its slots get other owners at once, and those that live stay. An unknown one changes nothing. */
export function removeNode(placement: Placement, node: string, bytes = NO_BYTES): Placement {
  const nodes = placement.nodes.filter(({ id }) => id !== node);
  return nodes.length === placement.nodes.length ? placement : reassign(placement, nodes, bytes);
}

/**
 * A node is to go: others get its slots, for which it answers until they have loaded. It stays in the placement until it
 * is removed. Throws TW_DHT_UNKNOWN_NODE, TW_DHT_LAST_NODE.
 */
export function drainNode(placement: Placement, node: string, bytes = NO_BYTES): Placement {
  const nodes = withDraining(placement.nodes, node);
  if (nodes.every((one) => one.draining)) throw lastNode(node);
  return reassign(placement, nodes, bytes);
}

/** Every node comes to hold its weight's share of the bytes, as nearly as whole slots allow. */
export function rebalance(placement: Placement, bytes = NO_BYTES): Placement {
  return reassign(placement, placement.nodes, bytes, { mayReceive: () => true });
}

/** A node has loaded slots and answers for them. Slots that it no longer owns are passed over. */
export function markAvailable(placement: Placement, node: string, slots: Iterable<number>): Placement {
  return withSlots(placement, slots, (owners) =>
    owners.map((owner) =>
      owner.node === node && owner.state === 'initializing' ? { node, state: 'available' } : owner,
    ),
  );
}

/** A leaving owner lets slots go. Those that it still has to answer for, and those that it does not leave, stay. */
export function releaseSlots(placement: Placement, node: string, slots: Iterable<number>): Placement {
  return withSlots(placement, slots, (owners) =>
    isHandoverComplete(owners)
      ? owners.filter((owner) => owner.node !== node || owner.state !== 'leaving')
      : owners,
  );
}

// Holders of a slot before the change itself

type OwnersToKeep = (owners: readonly Owner[]) => string[];

const remainingOwners: OwnersToKeep = (owners) =>
  owners.filter(({ state }) => state !== 'leaving').map(({ node }) => node);

/** A node that leaves takes the place of one that has not loaded. */
function resumedOwnersOf(node: string): OwnersToKeep {
  return (owners) => {
    const ids = remainingOwners(owners);
    const heir = owners.find(({ state }) => state === 'initializing')?.node;
    const isLeaving = owners.some((owner) => owner.node === node && owner.state === 'leaving');
    return isLeaving ? ids.map((id) => (id === heir ? node : id)) : ids;
  };
}

// From one placement to the next

interface ChangeOptions {
  ownersToKeep?: OwnersToKeep;
  /** Nodes that may be given more than what others have to give up. */
  mayReceive?: (id: string) => boolean;
}

function reassign(
  placement: Placement,
  nodes: readonly PlacementNode[],
  bytes: BytesBySlot,
  { ownersToKeep = remainingOwners, mayReceive = () => false }: ChangeOptions = {},
): Placement {
  const active = nodes.filter((node) => !node.draining);
  const numbers = new Map(active.map(({ id }, number) => [id, number]));
  const held = placement.slots.map((owners) =>
    ownersToKeep(owners).map((id) => numbers.get(id) ?? UNASSIGNED),
  );
  const holders = new Rebalancer(active, placement.owners, held, bytes);
  holders.fill();
  const receivers = [...numbers.values()].filter((number) => mayReceive(active[number]!.id));
  if (receivers.length > 0) holders.balance(receivers);
  const ids = new Set(nodes.map(({ id }) => id));
  const slots = placement.slots.map((owners, slot) => {
    const wanted = holders.assignment[slot]!.map((number) => active[number]!.id);
    const isSame = owners.length === wanted.length && owners.every(({ node }, i) => node === wanted[i]);
    if (isSame && owners.every(({ state }) => state !== 'leaving')) return owners;
    return ownersAfter(
      owners.filter(({ node }) => ids.has(node)),
      wanted,
    );
  });
  return nextPlacement(placement, nodes, slots);
}

/** What becomes of the living owners of a slot when these are to hold it. */
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

/** The next version; owners that have not changed stay the same objects, and so does a placement in which none has. */
function nextPlacement(
  placement: Placement,
  nodes: readonly PlacementNode[],
  changed: readonly (readonly Owner[])[],
): Placement {
  const slots = placement.slots.map((owners, slot) =>
    areEqual(owners, changed[slot]!) ? owners : changed[slot]!,
  );
  const isSame =
    isDeepStrictEqual(nodes, placement.nodes) &&
    slots.every((owners, slot) => owners === placement.slots[slot]);
  return isSame ? placement : { ...placement, version: placement.version + 1, nodes, slots };
}

function areEqual(a: readonly Owner[], b: readonly Owner[]): boolean {
  return (
    a.length === b.length && a.every(({ node, state }, i) => node === b[i]!.node && state === b[i]!.state)
  );
}

/** With a node in the place of the one of its id, in the order of ids. */
function withNode(nodes: readonly PlacementNode[], node: PlacementNode): PlacementNode[] {
  return [...nodes.filter(({ id }) => id !== node.id), node].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function withDraining(nodes: readonly PlacementNode[], id: string): PlacementNode[] {
  const node = nodes.find((one) => one.id === id);
  if (!node) throw unknownNode(id);
  return withNode(nodes, { ...node, draining: true });
}
