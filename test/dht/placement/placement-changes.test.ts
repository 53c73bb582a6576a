import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Placement, readableOwners, rebalance, SLOTS } from '../../../src/dht/index.js';
import { emptyPlacement, slotsOfNode } from '../../../src/dht/placement.js';
import {
  addNode,
  drainNode,
  markAvailable,
  releaseSlots,
  removeNode,
} from '../../../src/dht/placement-changes.js';
import { DEFAULT_PREFIX_LENGTHS } from '../../../src/dht/slots.js';
import {
  assertSound,
  fairShares,
  happenings,
  loads,
  moved,
  node,
  placementOf,
  settled,
  skewedBytes,
} from './placements.js';

const ones = new Array<number>(SLOTS).fill(1);
/** Measured sizes from a seed, or none. */
const seeds = fc.option(fc.nat(1000));
const bytesOf = (seed: number | null) => (seed === null ? ones : skewedBytes(seed));
const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
const weights = fc.array(fc.constantFrom(1, 2, 4), { minLength: 2, maxLength: 12 });
const namesOf = (all: readonly number[]) =>
  all.map((weight, i) => node(`n${String(i).padStart(2, '0')}`, { weight }));

/** How far each node is above its target. */
function surpluses(placement: Placement, bytes: ArrayLike<number>, copies: number): number[] {
  const shares = fairShares(
    placement.nodes.map(({ weight }) => weight),
    copies,
  );
  const total = sum(Array.from(bytes));
  return loads(placement, bytes).map((load, i) => load - shares[i]! * total);
}

test('after any events, every slot has its owners, in enough zones, and is always answered for', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 3 }),
      seeds,
      fc.array(happenings, { minLength: 1, maxLength: 10 }),
      (owners, seed, all) => {
        const bytes = bytesOf(seed);
        let placement = emptyPlacement(DEFAULT_PREFIX_LENGTHS, owners);
        for (const { to, dead } of all) {
          const before = placement;
          placement = to(before, bytes);
          assertSound(placement);
          assert.equal(placement.version - before.version, placement === before ? 0 : 1);
          for (const [slot, was] of before.slots.entries()) {
            const lives = readableOwners(was).some((owner) => owner.node !== dead);
            if (lives) assert.notEqual(readableOwners(placement.slots[slot]!).length, 0, `slot ${slot}`);
          }
        }
      },
    ),
    { seed: 42, numRuns: 12 },
  );
});

test('the same input gives the same result', () => {
  const run = () => {
    const bytes = skewedBytes(5);
    const grown = placementOf(2, namesOf([1, 2, 4, 1, 2]), bytes);
    return rebalance(drainNode(removeNode(grown, 'n01', bytes), 'n02', bytes), skewedBytes(6));
  };
  assert.deepEqual(run(), run());
});

test('a joining node gets its share from nodes with a surplus, and nothing else moves', () => {
  fc.assert(
    fc.property(
      weights,
      fc.constantFrom(1, 2, 4),
      fc.integer({ min: 1, max: 3 }),
      seeds,
      (some, weight, owners, seed) => {
        const bytes = bytesOf(seed);
        const copies = Math.min(owners, some.length + 1);
        const before = settled(rebalance(placementOf(owners, namesOf(some), bytes), bytes));
        const after = addNode(before, node('new', { weight }), bytes);
        const lack = surpluses(
          {
            ...before,
            nodes: [...before.nodes, node('new', { weight })].map((one) => ({ ...one, draining: false })),
          },
          bytes,
          copies,
        );
        const least = Math.max(sum(lack.filter((x) => x > 0)), -lack.at(-1)!);
        assert.ok(moved(before, after, bytes) <= 1.1 * least, `${moved(before, after, bytes)} of ${least}`);
        // Everything that moves goes to the new node, which then has its share.
        assert.deepEqual(
          moved(before, after, bytes),
          loads(after, bytes).at(after.nodes.findIndex(({ id }) => id === 'new')),
        );
        assert.ok(
          surpluses(after, bytes, copies).every(
            (x) => Math.abs(x) < 0.03 * (sum(Array.from(bytes)) / some.length),
          ),
        );
      },
    ),
    { seed: 42, numRuns: 10 },
  );
});

test('only the slots of a dead or draining node move', () => {
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 2 }), seeds, (some, owners, seed) => {
      const bytes = bytesOf(seed);
      const before = settled(rebalance(placementOf(owners, namesOf(some), bytes), bytes));
      const had = loads(before, bytes)[0]!;
      // With two nodes and two owners, no node is left to take over.
      const expected = some.length > owners ? had : 0;
      const dead = removeNode(before, 'n00', bytes);
      assert.equal(moved(before, dead, bytes), expected);
      const drained = drainNode(before, 'n00', bytes);
      assert.equal(moved(before, drained, bytes), expected);
      for (const [slot, was] of before.slots.entries()) {
        const others = was.filter((owner) => owner.node !== 'n00').map((owner) => owner.node);
        for (const now of [dead, drained])
          assert.ok(
            others.every((id) =>
              now.slots[slot]!.some((owner) => owner.node === id && owner.state === 'available'),
            ),
          );
      }
    }),
    { seed: 42, numRuns: 12 },
  );
});

test('after any events, a rebalance gives each node its share', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 3 }),
      seeds,
      fc.array(happenings, { minLength: 4, maxLength: 10 }),
      (owners, seed, all) => {
        const bytes = bytesOf(seed);
        const start = placementOf(
          owners,
          ['a', 'b', 'c', 'd'].map((id) => node(id)),
        );
        const last = all.reduce((placement, { to }) => to(placement, ones), start);
        // In one zone; the effect of zones on shares has its own tests.
        const nodes = last.nodes.map((one) => ({ ...one, zone: '', draining: false }));
        const flat = nodes.reduce((placement, one) => addNode(placement, one, bytes), settled(last));
        const after = rebalance(flat, bytes);
        const copies = Math.min(owners, nodes.length);
        const most = Math.max(...Array.from(bytes));
        assert.ok(surpluses(after, bytes, copies).every((x) => Math.abs(x) <= most));
        assert.equal(rebalance(after, bytes), after);
      },
    ),
    { seed: 42, numRuns: 12 },
  );
});

test('weights 1:2:4 get 1:2:4 of the bytes, and of the empty slots', () => {
  const bytes = skewedBytes(3);
  const placement = rebalance(placementOf(1, namesOf([1, 2, 4])), bytes);
  const [one = 0, two, four] = loads(placement, bytes);
  assert.ok(Math.abs(two! / one - 2) < 0.01 && Math.abs(four! / one - 4) < 0.01);
  const empty = loads(
    placement,
    Array.from(bytes, (size) => (size === 0 ? 1 : 0)),
  );
  assert.ok(Math.abs(empty[1]! / empty[0]! - 2) < 0.02 && Math.abs(empty[2]! / empty[0]! - 4) < 0.04);
});

test('a node that is too large for two owners of each slot holds everything once', () => {
  const placement = rebalance(placementOf(2, namesOf([1, 2, 9])), ones);
  const [one, two, nine] = loads(placement, ones);
  assert.equal(nine, SLOTS);
  assert.ok(Math.abs(one! - SLOTS / 3) <= 1 && Math.abs(two! - (2 * SLOTS) / 3) <= 1);
});

test('each of two zones holds everything once, however unequal they are', () => {
  const placement = rebalance(
    placementOf(2, [node('a', { zone: 'x' }), ...['b', 'c', 'd', 'e'].map((id) => node(id, { zone: 'y' }))]),
    ones,
  );
  assertSound(placement);
  assert.deepEqual(loads(placement, ones), [SLOTS, ...new Array(4).fill(SLOTS / 4)]);
});

test('work is distributed as well: every node is the first owner of its share', () => {
  for (const count of [2, 3, 7]) {
    const placement = placementOf(2, namesOf(new Array(count).fill(1)));
    const firsts = new Map<string, number>();
    for (const [first] of placement.slots) firsts.set(first!.node, (firsts.get(first!.node) ?? 0) + 1);
    for (const { id } of placement.nodes)
      assert.ok(Math.abs((firsts.get(id)! * count) / SLOTS - 1) < 0.1, id);
  }
});

test('with more owners than nodes, each node owns everything, and so does the next one', () => {
  const two = settled(placementOf(3, namesOf([1, 1])));
  assert.ok(two.slots.every((owners) => owners.length === 2));
  const three = addNode(two, node('n02'));
  assert.ok(three.slots.every((owners) => owners.length === 3));
  assert.equal(moved(two, three, ones), SLOTS);
  const four = addNode(settled(three), node('n03'));
  assert.deepEqual(loads(four, ones), new Array(4).fill((3 * SLOTS) / 4));
});

test('an owner starts as initializing, answers once it has loaded, and leaves once its successor answers', () => {
  const one = addNode(emptyPlacement(DEFAULT_PREFIX_LENGTHS, 1), node('a'));
  assert.deepEqual(one.slots[0], [{ node: 'a', state: 'initializing' }]);
  const two = addNode(settled(one), node('b'));
  const slots = slotsOfNode(two, 'b', 'initializing');
  const slot = slots[0]!;
  assert.equal(slots.length, SLOTS / 2);
  assert.deepEqual(two.slots[slot], [
    { node: 'b', state: 'initializing' },
    { node: 'a', state: 'leaving' },
  ]);
  assert.deepEqual(readableOwners(two.slots[slot]!), [{ node: 'a', state: 'leaving' }]);
  assert.equal(releaseSlots(two, 'a', slots), two, 'it still has to answer');
  const taken = markAvailable(two, 'b', slots);
  assert.deepEqual(readableOwners(taken.slots[slot]!), [
    { node: 'b', state: 'available' },
    { node: 'a', state: 'leaving' },
  ]);
  assert.equal(markAvailable(taken, 'b', slots), taken);
  assert.equal(releaseSlots(taken, 'b', slots), taken, 'it does not leave');
  assert.deepEqual(releaseSlots(taken, 'a', slots).slots[slot], [{ node: 'b', state: 'available' }]);
});

test('a dead node that rejoins loads its slots again, while others answer', () => {
  const before = settled(placementOf(2, namesOf([1, 1, 1, 1])));
  const dead = removeNode(before, 'n01');
  assert.ok(dead.slots.every((owners) => readableOwners(owners).length > 0));
  const back = addNode(dead, node('n01'));
  assert.ok(slotsOfNode(back, 'n01', 'initializing').length > 0);
  assert.deepEqual(slotsOfNode(back, 'n01', 'available'), []);
  assert.ok(back.slots.every((owners) => readableOwners(owners).length > 0));
  assertSound(settled(back));
  assert.ok(loads(settled(back), ones).every((load) => Math.abs(load - SLOTS / 2) <= 2));
});

test('the last node may die, and another one starts over', () => {
  const none = removeNode(settled(placementOf(2, [node('a')])), 'a');
  assert.ok(none.slots.every((owners) => owners.length === 0));
  const again = settled(addNode(none, node('b')));
  assert.deepEqual(again.slots[7], [{ node: 'b', state: 'available' }]);
});

test('a cancelled drain loads nothing on the node', () => {
  const before = settled(placementOf(2, namesOf([1, 1, 1, 1, 1])));
  const drained = drainNode(before, 'n02');
  assert.deepEqual(slotsOfNode(drained, 'n02', 'available'), []);
  const back = addNode(drained, node('n02'));
  assertSound(back);
  assert.deepEqual(slotsOfNode(back, 'n02', 'available'), slotsOfNode(before, 'n02', 'available'));
  assert.equal(moved(before, back, ones), 0);
});

test('a drained node holds nothing, and stays until it is removed', () => {
  const drained = settled(drainNode(settled(placementOf(2, namesOf([1, 1, 1]))), 'n00'));
  assert.ok(drained.slots.flat().every((owner) => owner.node !== 'n00'));
  assert.ok(drained.nodes.some((one) => one.id === 'n00' && one.draining));
  const gone = removeNode(drained, 'n00');
  assert.equal(gone.slots[0], drained.slots[0]);
  assert.equal(moved(drained, gone, ones), 0);
});

test('a node in a new zone takes one owner of every slot', () => {
  const before = settled(
    placementOf(
      2,
      ['a', 'b', 'c'].map((id) => node(id, { zone: 'x' })),
    ),
  );
  const after = addNode(before, node('d', { zone: 'y' }));
  assertSound(after);
  assert.equal(moved(before, after, ones), SLOTS);
  const [a = 0, b = 0, c = 0, d] = loads(after, ones);
  assert.equal(d, SLOTS);
  assert.ok([a, b, c].every((load) => Math.abs(load - SLOTS / 3) <= 1));
});

test('a new weight moves slots; the same node again does not', () => {
  const before = settled(placementOf(1, namesOf([1, 1])));
  assert.equal(addNode(before, node('n01')), before);
  assert.equal(removeNode(before, 'other'), before);
  const heavier = addNode(before, node('n01', { weight: 3 }));
  assert.deepEqual(loads(heavier, ones), [SLOTS / 4, (3 * SLOTS) / 4]);
});

test('impossible changes are refused', () => {
  const placement = placementOf(2, namesOf([1, 1]));
  assert.throws(() => drainNode(placement, 'x'), { code: 'TW_DHT_UNKNOWN_NODE' });
  const drained = drainNode(placement, 'n00');
  assert.throws(() => drainNode(drained, 'n01'), { code: 'TW_DHT_LAST_NODE' });
});
