/** The slots of index rows, and the choice of the node to ask. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Owner } from '../../../src/dht/placement.js';
import { routeQuery } from '../../../src/dht/scatter-gather.js';
import { DEFAULT_PREFIX_LENGTHS, rowSlotLookup, slotOf } from '../../../src/dht/slots.js';
import { ColumnIndex, type TileRecord } from '../../../src/storage/index.js';

const cells = fc.oneof(
  fc.record({
    grid: fc.constant('geohash' as const),
    // Few letters, so that cells contain each other.
    geocode: fc.stringMatching(/^[09z]{1,7}$/),
  }),
  fc.record({ grid: fc.constant('quadtile' as const), geocode: fc.stringMatching(/^[03]{1,12}$/) }),
);

test('the slot of a row is that of its cell, for any order and precision', () => {
  fc.assert(
    fc.asyncProperty(fc.array(cells, { maxLength: 60 }), fc.boolean(), async (all, isSorted) => {
      const index = new ColumnIndex();
      const records = all.map(({ grid, geocode }, i) => ({
        ...{
          id: `c_s${i}_${grid[0]}${geocode}`,
          collection: 'c',
          scene: `s${i}`,
          grid,
          geocode,
          version: '',
        },
        source: 'raw',
        start: i,
        end: i,
        platform: null,
        coverage: 100,
        cloudCover: null,
        groups: [],
        footprint: [],
        derivedFrom: [],
        createdAt: 0,
      }));
      index.add(records as TileRecord[]);
      if (isSorted) index.compactTail();
      const slots = rowSlotLookup(DEFAULT_PREFIX_LENGTHS);
      await index.forEach({}, (rows) => {
        const slotOfRow = slots(rows);
        const check = (row: number) => {
          const { grid, geocode } = rows.cellOf(row);
          assert.equal(slotOfRow(row), slotOf(grid, geocode, DEFAULT_PREFIX_LENGTHS[grid]), geocode);
        };
        for (let row = rows.rowCount - 1; row >= 0; row--) check(row);
        return check;
      });
    }),
    { seed: 42 },
  );
});

test('a slot is routed to the node itself, otherwise to one that is asked anyway, otherwise to the first that can answer', () => {
  const owners = (...all: string[]): Owner[] =>
    all.map((text) => {
      const [node = '', state = 'available'] = text.split(':');
      return { node, state: state as Owner['state'] };
    });
  const slots = [
    owners('b', 'a'),
    owners('c', 'b'),
    owners('c', 'b'),
    owners('d', 'c'),
    owners('d:initializing', 'c:leaving'),
    owners('d:initializing'),
    owners('e:leaving', 'd'),
  ];
  assert.deepEqual(routeQuery({ slots }, slots.keys(), 'a'), {
    byNode: [
      { node: 'a', slots: [0] },
      { node: 'c', slots: [1, 2, 3, 4] },
      { node: 'd', slots: [6] },
    ],
    unanswered: [5],
  });
  assert.deepEqual(routeQuery({ slots }, slots.keys(), 'a', new Set(['c', 'd'])), {
    byNode: [
      { node: 'a', slots: [0] },
      { node: 'b', slots: [1, 2] },
      { node: 'e', slots: [6] },
    ],
    unanswered: [3, 4, 5],
  });
});
