/** The slots of a job are divided evenly among their owners. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assignSlots, type SlotWork } from '../../../src/jobs/cluster/coordinator.js';
import { randomStream } from '../../../src/utils/random.js';

const NODES = ['a', 'b', 'c', 'd', 'e'];

/** Slots with two random owners each. */
function randomSlots(
  seed: number,
  count: number,
  nodes: number,
  bytes: (random: number) => number,
): SlotWork[] {
  const { next } = randomStream(seed);
  return Array.from({ length: count }, (_, slot) => {
    const first = Math.floor(next() * nodes);
    const second = (first + 1 + Math.floor(next() * (nodes - 1))) % nodes;
    return { slot, nodes: [NODES[first]!, NODES[second]!], bytes: Math.round(bytes(next())) };
  });
}

function loadsOf(slots: readonly SlotWork[], shares: Map<string, number[]>): Map<string, number> {
  return new Map(
    [...shares].map(([node, own]) => [node, own.reduce((sum, slot) => sum + slots[slot]!.bytes, 0)]),
  );
}

const equally = () => 1;

test('each slot goes to one of its owners, and the busiest node has no more work than with first owners', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const slots = randomSlots(seed, 1 + (seed % 60), 2 + (seed % 4), (random) =>
      random < 0.3 ? 0 : 1e6 * random ** 3,
    );
    const shares = assignSlots(slots, equally);
    assert.deepEqual(
      [...shares.values()].flat().sort((a, b) => a - b),
      slots.map(({ slot }) => slot),
    );
    for (const [node, own] of shares) for (const slot of own) assert.ok(slots[slot]!.nodes.includes(node));
    const first = new Map<string, number[]>();
    for (const { slot, nodes } of slots) first.set(nodes[0]!, [...(first.get(nodes[0]!) ?? []), slot]);
    const most = (of: Map<string, number[]>) => Math.max(...loadsOf(slots, of).values());
    assert.ok(most(shares) <= most(first), `seed ${seed}`);
  }
});

test('36 equal slots with two owners each on three nodes are divided into thirds', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const slots = randomSlots(seed, 36, 3, () => 1000);
    const counts = [...assignSlots(slots, equally).values()].map(({ length }) => length);
    assert.deepEqual(counts, [12, 12, 12], `seed ${seed}`);
  }
});

test('work moves along a chain of owners', () => {
  const slots = [
    ...Array.from({ length: 8 }, (_, slot) => ({ slot, nodes: ['a', 'b'], bytes: 10 })),
    ...Array.from({ length: 4 }, (_, i) => ({ slot: 8 + i, nodes: ['b', 'c'], bytes: 10 })),
  ];
  const shares = assignSlots(slots, equally);
  // First owners only: 8, 4, 0. A move balances two nodes, so a difference of one slot may remain between them.
  assert.ok(
    ['a', 'b', 'c'].every((node) => Math.abs(shares.get(node)!.length - 4) <= 1),
    JSON.stringify([...shares]),
  );
});

test('a node with twice the weight gets twice the bytes', () => {
  const slots = Array.from({ length: 30 }, (_, slot) => ({ slot, nodes: ['a', 'b'], bytes: 10 }));
  const shares = assignSlots(slots, (node) => (node === 'b' ? 2 : 1));
  assert.deepEqual([shares.get('a')?.length, shares.get('b')?.length], [10, 20]);
});

test('slots stay at their first owners if these have equal work, or if sizes are unknown', () => {
  const slots = (bytes: number) =>
    Array.from({ length: 20 }, (_, slot) => ({ slot, nodes: slot % 2 ? ['a', 'b'] : ['b', 'a'], bytes }));
  for (const bytes of [0, 10]) {
    const shares = assignSlots(slots(bytes), equally);
    assert.ok(shares.get('a')!.every((slot) => slot % 2 === 1));
    assert.ok(shares.get('b')!.every((slot) => slot % 2 === 0));
  }
});
