/** Random placements, events, and the conditions that every placement must meet. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Placement, rebalance, SLOTS } from '../../../src/dht/index.js';
import { emptyPlacement, slotsOfNode } from '../../../src/dht/placement.js';
import {
  addNode,
  drainNode,
  markAvailable,
  type NewNode,
  releaseSlots,
  removeNode,
} from '../../../src/dht/placement-changes.js';
import { DEFAULT_PREFIX_LENGTHS } from '../../../src/dht/slots.js';

export const node = (id: string, part: Partial<NewNode> = {}): NewNode => ({
  id,
  zone: '',
  weight: 1,
  ...part,
});

/** A placement of nodes that have joined one after another. */
export function placementOf(owners: number, nodes: readonly NewNode[], bytes?: ArrayLike<number>): Placement {
  return nodes.reduce(
    (placement, one) => addNode(placement, one, bytes),
    emptyPlacement(DEFAULT_PREFIX_LENGTHS, owners),
  );
}

/** Every node has loaded all slots that it should own, and has released those that it leaves. */
export function settled(placement: Placement): Placement {
  const ids = placement.nodes.map(({ id }) => id);
  const all = ids.reduce(
    (last, id) => markAvailable(last, id, slotsOfNode(last, id, 'initializing')),
    placement,
  );
  return ids.reduce((last, id) => releaseSlots(last, id, slotsOfNode(last, id, 'leaving')), all);
}

/** Sizes of slots: a third is empty; the others have up to a thousand bytes, most of them few. */
export function skewedBytes(seed: number): Float64Array {
  let state = seed >>> 0;
  return Float64Array.from({ length: SLOTS }, (_, slot) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return slot % 3 === 0 ? 0 : 1 + Math.floor(1_000 * (state / 2 ** 32) ** 3);
  });
}

/** Sizes of the slots that are new to a node. */
export function moved(before: Placement, after: Placement, bytes: ArrayLike<number>): number {
  let sum = 0;
  after.slots.forEach((owners, slot) => {
    for (const { node, state } of owners)
      if (state === 'initializing' && !before.slots[slot]!.some((owner) => owner.node === node))
        sum += bytes[slot]!;
  });
  return sum;
}

/** Target bytes of each node, in the order of `nodes`. */
export function loads({ nodes, slots }: Placement, bytes: ArrayLike<number>): number[] {
  const sums = new Map(nodes.map(({ id }) => [id, 0]));
  slots.forEach((owners, slot) => {
    for (const { node, state } of owners)
      if (state !== 'leaving') sums.set(node, sums.get(node)! + bytes[slot]!);
  });
  return [...sums.values()];
}

/** Shares by weight, each at most 1, that add up to `copies`: the excess of a node is shared by the others, repeatedly. */
export function fairShares(weights: readonly number[], copies: number): number[] {
  const full = new Set<number>();
  for (;;) {
    const open = weights.filter((_, i) => !full.has(i)).reduce((a, b) => a + b, 0);
    const shares = weights.map((weight, i) => (full.has(i) ? 1 : ((copies - full.size) * weight) / open));
    const over = shares.findIndex((share, i) => share >= 1 && !full.has(i));
    if (over < 0) return shares;
    full.add(over);
  }
}

/** The invariants of `Placement`, in another formulation than that of the code. */
export function assertSound({ nodes, slots, owners: wanted }: Placement): void {
  const active = nodes.filter(({ draining }) => !draining);
  const zoneOf = new Map(active.map(({ id, zone }) => [id, zone]));
  const zones = new Set(zoneOf.values());
  const all = new Set(nodes.map(({ id }) => id));
  assert.equal(slots.length, SLOTS);
  const different = (all: readonly (string | undefined)[]) =>
    all.filter((one, i) => all.indexOf(one) === i).length;
  const count = Math.min(wanted, active.length);
  const places = Math.min(wanted, zones.size);
  for (const [slot, owners] of slots.entries()) {
    const ids = owners.map((owner) => owner.node);
    const staying = owners.filter(({ state }) => state !== 'leaving');
    const isSound =
      staying.length === count &&
      different(ids) === ids.length &&
      ids.every((id) => all.has(id)) &&
      staying.every((owner, i) => zoneOf.has(owner.node) && owner === owners[i]) &&
      different(staying.map((owner) => zoneOf.get(owner.node))) === places;
    if (!isSound) assert.fail(`slot ${slot}: ${JSON.stringify(owners)} of ${JSON.stringify(nodes)}`);
  }
}

/** A random event of a placement. Impossible events change nothing. */
export interface Happening {
  name: string;
  /** The node that is dead afterwards. */
  dead?: string;
  to(placement: Placement, bytes: ArrayLike<number>): Placement;
}

const ids = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g');
const newNodes: fc.Arbitrary<NewNode> = fc.record({
  id: ids,
  zone: fc.constantFrom('x', 'x', 'y', 'z'),
  weight: fc.constantFrom(1, 2, 4),
});
const mayDrain = ({ nodes }: Placement, id: string) =>
  nodes.some((one) => one.id === id) && nodes.some((one) => one.id !== id && !one.draining);

export const happenings: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 4,
    arbitrary: newNodes.map(
      (one): Happening => ({
        name: `join ${one.id}`,
        to: (placement, bytes) => addNode(placement, one, bytes),
      }),
    ),
  },
  {
    weight: 2,
    arbitrary: ids.map(
      (id): Happening => ({
        name: `remove ${id}`,
        dead: id,
        to: (placement, bytes) => removeNode(placement, id, bytes),
      }),
    ),
  },
  ids.map(
    (id): Happening => ({
      name: `drain ${id}`,
      to: (placement, bytes) => (mayDrain(placement, id) ? drainNode(placement, id, bytes) : placement),
    }),
  ),
  fc.constant<Happening>({ name: 'rebalance', to: (placement, bytes) => rebalance(placement, bytes) }),
  {
    weight: 3,
    arbitrary: fc.tuple(ids, fc.integer({ min: 1, max: 3 })).map(
      ([id, step]): Happening => ({
        name: `load ${id}`,
        to: (placement) =>
          markAvailable(
            placement,
            id,
            Array.from({ length: Math.floor(SLOTS / step) }, (_, i) => i * step),
          ),
      }),
    ),
  },
  ids.map(
    (id): Happening => ({
      name: `leave ${id}`,
      to: (placement) => releaseSlots(placement, id, placement.slots.keys()),
    }),
  ),
);
