import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assignSlots, type SlotBlocks } from '../../src/ingest/scene-parts.js';
import { randomStream } from '../../src/utils/random.js';

const even = () => 1;

/** Sum of the squares of the loads, computed from scratch. */
function cost(slots: SlotBlocks[], chosen: string[]): number {
  const all = new Map(slots.flatMap(({ blocks }) => [...blocks]));
  const bytes = [...all.values()].reduce((sum, value) => sum + value, 0);
  const cells = slots.reduce((sum, slot) => sum + slot.cells, 0);
  return [...new Set(chosen)].reduce((sum, node) => {
    const own = slots.filter((_, i) => chosen[i] === node);
    const blocks = new Map(own.flatMap((slot) => [...slot.blocks]));
    const read = [...blocks.values()].reduce((total, value) => total + value, 0);
    const share = (bytes * own.reduce((total, slot) => total + slot.cells, 0)) / cells;
    return sum + (read + share) ** 2;
  }, 0);
}

test('no assignment is worse than that to the first owners, and each slot stays with its owners', () => {
  const random = randomStream(7);
  const below = (n: number) => Math.floor(n * random.next());
  let better = 0;
  for (let round = 0; round < 200; round++) {
    const nodes = ['a', 'b', 'c', 'd', 'e'].slice(0, 2 + below(4));
    const slots = Array.from({ length: 1 + below(30) }, (): SlotBlocks => {
      const first = below(nodes.length);
      const second = (first + 1 + below(nodes.length - 1)) % nodes.length;
      const blocks = new Map(
        Array.from({ length: 1 + below(8) }, () => below(60)).map((key) => [`${key}`, 10 + key]),
      );
      return { nodes: [nodes[first]!, nodes[second]!], blocks, cells: 1 + below(20) };
    });
    const chosen = assignSlots(slots, even);
    assert.ok(slots.every((slot, i) => slot.nodes.includes(chosen[i]!)));
    assert.deepEqual(assignSlots(slots, even), chosen);
    const former = slots.map((slot) => slot.nodes[0]!);
    const [before, after] = [cost(slots, former), cost(slots, chosen)];
    assert.ok(after <= before * (1 + 1e-9), `${after} > ${before}`);
    if (after < before) better++;
  }
  assert.ok(better > 100, `${better} rounds are better`);
});

test('slots that share their blocks go to one node, and others are divided by weight', () => {
  const nodes = ['a', 'b'];
  const far = (from: number, count: number): SlotBlocks[] =>
    Array.from({ length: count }, (_, i) => ({ nodes, blocks: new Map([[`${from + i}`, 100]]), cells: 1 }));
  const counts = (chosen: string[]) => nodes.map((node) => chosen.filter((one) => one === node).length);
  assert.deepEqual(counts(assignSlots(far(0, 12), even)), [6, 6]);
  assert.deepEqual(counts(assignSlots(far(0, 12), (node) => (node === 'a' ? 3 : 1))), [9, 3]);

  const shared = new Map([['shared', 100_000]]);
  const pair: SlotBlocks[] = [
    { nodes: ['a', 'b'], blocks: shared, cells: 1 },
    { nodes: ['b', 'a'], blocks: shared, cells: 1 },
  ];
  const [one, other] = assignSlots([...pair, ...far(0, 40)], even);
  assert.equal(one, other);
  assert.deepEqual(assignSlots([{ nodes: ['b'], blocks: new Map(), cells: 1 }], even), ['b']);
});
