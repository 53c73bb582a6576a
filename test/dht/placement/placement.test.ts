import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { locate, type Placement, rebalance } from '../../../src/dht/index.js';
import { emptyPlacement, slotsOfNode } from '../../../src/dht/placement.js';
import { drainNode, removeNode } from '../../../src/dht/placement-changes.js';
import { decodePlacement, encodePlacement } from '../../../src/dht/placement-store.js';
import { DEFAULT_PREFIX_LENGTHS, slotOf } from '../../../src/dht/slots.js';
import { cells } from '../../query/tiles.js';
import { happenings, node, placementOf, settled, skewedBytes } from './placements.js';

const three = placementOf(
  2,
  ['a', 'b', 'c'].map((id) => node(id, { zone: `zone ${id}` })),
);

test('locate returns the owners of a tile', () => {
  fc.assert(
    fc.property(cells, ({ grid, geocode }) => {
      const found = locate(three, grid, geocode);
      assert.equal(found.slot, slotOf(grid, geocode, DEFAULT_PREFIX_LENGTHS[grid]));
      assert.equal(found.owners, three.slots[found.slot]);
      assert.deepEqual({ ...found, slot: 0, owners: [] }, { grid, geocode, slot: 0, owners: [] });
    }),
    { seed: 42 },
  );
  // The prefix length of the cluster counts, not the complete geocode.
  const coarse = { ...three, prefixLengths: { geohash: 2, quadtile: 3 } };
  assert.equal(locate(coarse, 'geohash', '9q8yy').slot, locate(coarse, 'geohash', '9qzzz').slot);
  assert.throws(() => locate(three, 'geohash', '9qa'), { code: 'TW_GEOCODE_INVALID' });
});

test('a placement is unchanged after encoding and decoding', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3 }), fc.array(happenings, { maxLength: 10 }), (owners, all) => {
      const start = emptyPlacement({ geohash: 3, quadtile: 24 }, owners);
      const last = all.reduce((placement, { to }) => to(placement, []), start);
      assert.deepEqual(decodePlacement(encodePlacement(last)), last);
    }),
    { seed: 42, numRuns: 10 },
  );
});

test('fifty nodes with two owners are far below 100 KB, even while slots move', () => {
  const bytes = skewedBytes(1);
  const nodes = Array.from({ length: 50 }, (_, i) =>
    node(`10.0.0.${100 + i}:8080`, { zone: `rack-${i % 7}` }),
  );
  const quiet = settled(rebalance(placementOf(2, nodes, bytes), skewedBytes(2)));
  const busy = removeNode(drainNode(quiet, '10.0.0.117:8080', bytes), '10.0.0.131:8080', bytes);
  for (const placement of [quiet, busy]) assert.ok(encodePlacement(placement).length < 60_000);
});

test('a placement that violates an invariant is neither written nor read', () => {
  const change = (part: Partial<Placement>): Placement => ({ ...three, ...part });
  const slotsWith = (...owners: Placement['slots'][number]) =>
    change({ slots: three.slots.map((all, slot) => (slot === 5 ? owners : all)) });
  const own = (id: string, state: 'available' | 'leaving' = 'available') => ({ node: id, state });
  const [a, b] = three.nodes;
  const faults: [what: RegExp, placement: Placement][] = [
    [/version is -1/, change({ version: -1 })],
    [/number of owners is 0/, change({ owners: 0 })],
    [/prefix length of geohash is 10/, change({ prefixLengths: { geohash: 10, quadtile: 9 } })],
    [/node a has the weight 0/, change({ nodes: [{ ...a!, weight: 0 }, ...three.nodes.slice(1)] })],
    [/node a is duplicated or out of order/, change({ nodes: [b!, a!, three.nodes[2]!] })],
    [/slot 5 has a node twice/, slotsWith(own('a'), own('a'))],
    [/slot 5 has 1 owners instead of 2/, slotsWith(own('a'), own('b', 'leaving'))],
    [/slot 5 has a leaving owner before/, slotsWith(own('c', 'leaving'), own('a'), own('b'))],
    [
      /too few zones: 1/,
      change({ nodes: three.nodes.map((one) => ({ ...one, zone: one.id === 'c' ? 'y' : 'x' })) }),
    ],
    [
      /owned by a, which is draining/,
      change({ nodes: [{ ...a!, draining: true }, ...three.nodes.slice(1)] }),
    ],
  ];
  for (const [message, placement] of faults)
    assert.throws(() => encodePlacement(placement), { code: 'TW_DHT_BAD_PLACEMENT', message });
});

test('a text that is not a placement is refused with the reason', () => {
  const good = JSON.parse(encodePlacement(three)) as Record<string, unknown>;
  const packed = (bytes: Buffer) => deflateRawSync(bytes).toString('base64');
  const slots = inflateRawSync(Buffer.from(good['slots'] as string, 'base64'));
  const unknown = Buffer.from(slots);
  unknown.writeUInt16LE(17, 0);
  const faults: [what: RegExp, text: string][] = [
    [/not JSON/, '{'],
    [/not a JSON object/, '7'],
    [/format is 2 instead of 1/, JSON.stringify({ ...good, format: 2 })],
    [/nodes or slots are missing/, JSON.stringify({ ...good, slots: undefined })],
    [/node undefined has no id/, JSON.stringify({ ...good, nodes: [{}, {}, {}] })],
    [/slots are damaged/, JSON.stringify({ ...good, slots: 'AAAA' })],
    [/slots are damaged/, JSON.stringify({ ...good, slots: packed(Buffer.alloc(50_000_000)) })],
    [/has 16383 complete slots/, JSON.stringify({ ...good, slots: packed(slots.subarray(0, -4)) })],
    [/slot 0 has an unknown owner/, JSON.stringify({ ...good, slots: packed(unknown) })],
    [/prefix length of geohash is undefined/, JSON.stringify({ ...good, prefixLengths: null })],
  ];
  for (const [message, text] of faults)
    assert.throws(() => decodePlacement(text), { code: 'TW_DHT_BAD_PLACEMENT', message });
});

test('the slots of a node are selected by their state', () => {
  const drained = drainNode(settled(three), 'b');
  assert.deepEqual(slotsOfNode(drained, 'b', 'available'), []);
  assert.deepEqual(slotsOfNode(drained, 'b', 'leaving'), slotsOfNode(settled(three), 'b', 'available'));
});
