import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readableOwners } from '../../../src/dht/index.js';
import type { Owner } from '../../../src/dht/placement.js';
import { routeQuery } from '../../../src/dht/scatter-gather.js';

const nodes = fc.constantFrom('a', 'b', 'c', 'd');
const owner = fc.record<Owner>({
  node: nodes,
  state: fc.constantFrom('initializing', 'available', 'leaving'),
});
const placements = fc.array(fc.uniqueArray(owner, { maxLength: 3, selector: ({ node }) => node }), {
  maxLength: 20,
});

test('each slot goes to an owner that can answer, to the node itself if it can', () => {
  fc.assert(
    fc.property(placements, nodes, fc.uniqueArray(nodes, { maxLength: 2 }), (slots, self, away) => {
      const avoided = new Set<string>(away);
      const { byNode, unanswered } = routeQuery({ slots }, slots.keys(), self, avoided);
      const nodeOf = new Map(byNode.flatMap(({ node, slots }) => slots.map((slot) => [slot, node] as const)));
      assert.equal(new Set(byNode.map(({ node }) => node)).size, byNode.length);
      for (const [slot, owners] of slots.entries()) {
        const able = readableOwners(owners)
          .map(({ node }) => node)
          .filter((node) => !avoided.has(node));
        assert.equal(unanswered.includes(slot), able.length === 0);
        if (able.some((node) => node === self)) assert.equal(nodeOf.get(slot), self);
        else if (able.length > 0) assert.ok(able.some((node) => node === nodeOf.get(slot)));
      }
    }),
    { seed: 42, numRuns: 300 },
  );
});

test('a node that is asked anyway is asked for more; a leaving owner only if no other owner remains', () => {
  const at = (...all: [string, Owner['state']][]) => all.map(([node, state]) => ({ node, state }));
  const slots = [
    at(['b', 'available'], ['c', 'available']),
    at(['c', 'available'], ['b', 'available']),
    at(['d', 'leaving'], ['c', 'available']),
  ];
  assert.deepEqual(routeQuery({ slots }, [0, 1, 2], 'a').byNode, [
    { node: 'b', slots: [0, 1] },
    { node: 'c', slots: [2] },
  ]);
});
