import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ALL_SLOTS } from '../../../src/dht/index.js';
import { candidateSlots, DEFAULT_PREFIX_LENGTHS, slotOf } from '../../../src/dht/slots.js';
import { type GridName, geohash, gridByName, grids, quadtile } from '../../../src/grid/index.js';
import { compileFilter } from '../../../src/query/compile.js';
import { searchTiles } from '../../../src/query/index.js';
import { type CellKeyRange, ColumnIndex } from '../../../src/storage/index.js';
import { cells, tile, tiles } from '../../query/tiles.js';
import { filters } from '../../query/trees.js';

const slotsOf = (ranges: CellKeyRange[], lengths = DEFAULT_PREFIX_LENGTHS) => [
  ...candidateSlots({ ranges }, lengths),
];
const below = (grid: GridName, geocode: string): CellKeyRange => {
  const { key, span } = gridByName(grid).key(geocode);
  return { grid, from: key, to: key + span };
};
const exactly = (grid: GridName, geocode: string): CellKeyRange => {
  const { key } = gridByName(grid).key(geocode);
  return { grid, from: key, to: key + 1 };
};
/** The cell itself, without others that share its key. */
const alone = (grid: GridName, geocode: string): CellKeyRange => ({
  ...exactly(grid, geocode),
  precision: geocode.length,
});
const ascending = (slots: Iterable<number>) => [...new Set(slots)].sort((a, b) => a - b);

/** Ranges of cells, of single keys and cells, and between any two cells. */
const ranges = fc.oneof(
  cells.map(({ grid, geocode }) => below(grid, geocode)),
  cells.map(({ grid, geocode }) => exactly(grid, geocode)),
  cells.map(({ grid, geocode }) => alone(grid, geocode)),
  fc.tuple(cells, cells).map(([one, other]): CellKeyRange => {
    const ends = [one, other]
      .filter(({ grid }) => grid === one.grid)
      .map(({ grid, geocode }) => below(grid, geocode));
    return {
      grid: one.grid,
      from: Math.min(...ends.map(({ from }) => from)),
      to: Math.max(...ends.map(({ to }) => to)),
    };
  }),
);

const isIn = (range: CellKeyRange, grid: GridName, geocode: string) => {
  const { key } = gridByName(grid).key(geocode);
  const { from, to, precision = geocode.length } = range;
  return range.grid === grid && key >= from && key < to && geocode.length === precision;
};

test('the slot of every tile in the ranges is covered', () => {
  fc.assert(
    fc.property(fc.array(ranges, { maxLength: 4 }), fc.array(tiles, { maxLength: 40 }), (some, all) => {
      const slots = new Set(candidateSlots({ ranges: some }, DEFAULT_PREFIX_LENGTHS));
      for (const { grid, geocode } of all) {
        if (some.some((range) => isIn(range, grid, geocode)))
          assert.ok(slots.has(slotOf(grid, geocode, DEFAULT_PREFIX_LENGTHS[grid])));
      }
    }),
    { seed: 42, numRuns: 100 },
  );
});

test('every tile that matches a filter is in a covered slot', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(tiles, { maxLength: 40, selector: ({ id }) => id }),
      filters,
      async (all, filter) => {
        const index = new ColumnIndex();
        index.load(all);
        const slots = new Set(candidateSlots(compileFilter(filter), DEFAULT_PREFIX_LENGTHS));
        const found = new Set((await searchTiles(index, filter)).ids);
        for (const { id, grid, geocode } of all)
          if (found.has(id)) assert.ok(slots.has(slotOf(grid, geocode, DEFAULT_PREFIX_LENGTHS[grid])), id);
      },
    ),
    { seed: 42, numRuns: 300 },
  );
});

test('no slot without a possible tile of the ranges is covered', () => {
  // The prefixes are so short that all of them can be checked.
  const lengths = { geohash: 2, quadtile: 4 };
  const hashed = grids.flatMap((grid) => {
    const found: { grid: GridName; geocode: string; key: number; last: number; slot: number }[] = [];
    for (let precision = 1; precision <= lengths[grid.name]; precision++)
      for (const geocode of grid.cover(grid.extent, precision)) {
        const { key, span } = grid.key(geocode);
        // For a shorter geocode only its own tile, for a prefix all tiles below it.
        const last = precision === lengths[grid.name] ? key + span - 1 : key;
        const slot = slotOf(grid.name, geocode, lengths[grid.name]);
        found.push({ grid: grid.name, geocode, key, last, slot });
      }
    return found;
  });
  fc.assert(
    fc.property(fc.array(ranges, { maxLength: 4 }), (some) => {
      const expected = hashed.filter(({ grid, geocode, key, last }) =>
        some.some((range) => {
          if (range.grid !== grid || range.from > last || range.to <= key || range.from >= range.to)
            return false;
          const { precision } = range;
          if (precision === undefined) return true;
          // The cell itself, or its hashed prefix.
          const cell = gridByName(grid).geocode(range.from, precision);
          return geocode === cell.slice(0, lengths[grid]);
        }),
      );
      assert.deepEqual(slotsOf(some, lengths), ascending(expected.map(({ slot }) => slot)));
    }),
    { seed: 42, numRuns: 300 },
  );
});

test('a geohash-5 cell needs only its own slot; the first cell of larger ones also needs theirs', () => {
  const slot = (geocode: string) => slotOf('geohash', geocode, 4);
  assert.deepEqual(slotsOf([exactly('geohash', '9q8yy')]), [slot('9q8y')]);
  assert.deepEqual(slotsOf([below('geohash', '9q8yy')]), [slot('9q8y')]);
  // 9q800 shares its key with the larger cells 9q8 and 9q80.
  assert.deepEqual(slotsOf([exactly('geohash', '9q800')]), ascending([slot('9q8'), slot('9q80')]));
});

test('a point is in one cell of each precision, and only in their slots', () => {
  const { ranges } = compileFilter({
    op: 's_intersects',
    shape: { bbox: [-122.41, 37.77, -122.41, 37.77] },
  });
  const expected = grids.flatMap(({ name, minPrecision }) =>
    Array.from({ length: DEFAULT_PREFIX_LENGTHS[name] - minPrecision + 1 }, (_, i) => {
      const [geocode] = gridByName(name).cover(
        (([x, y]) => ({ west: x!, south: y!, east: x!, north: y! }))(
          gridByName(name).fromLonLat(-122.41, 37.77),
        ),
        minPrecision + i,
      );
      return slotOf(name, geocode!, DEFAULT_PREFIX_LENGTHS[name]);
    }),
  );
  assert.deepEqual(slotsOf(ranges!), ascending(expected));
});

test('a cell that is shorter than the prefix covers its own slot and those of all prefixes below it', () => {
  const expected = ['9q8', ...geohash.children('9q8')].map((geocode) => slotOf('geohash', geocode, 4));
  assert.deepEqual(slotsOf([below('geohash', '9q8')]), ascending(expected));
});

test('the whole earth, and too large a part of it, cover all slots', () => {
  assert.equal(candidateSlots({}, DEFAULT_PREFIX_LENGTHS), ALL_SLOTS);
  assert.equal(candidateSlots({ ranges: [below('geohash', '9')] }, DEFAULT_PREFIX_LENGTHS), ALL_SLOTS);
  assert.deepEqual([...ALL_SLOTS.slice(0, 3), ALL_SLOTS.length], [0, 1, 2, 16_384]);
});

test('an empty range covers no slot', () => {
  assert.deepEqual(slotsOf([]), []);
  assert.deepEqual([...candidateSlots({ ids: [] }, DEFAULT_PREFIX_LENGTHS)], []);
});

test('ids are in the slots of their cells', () => {
  fc.assert(
    fc.property(fc.array(tiles, { maxLength: 20 }), (all) => {
      const slots = new Set(candidateSlots({ ids: all.map(({ id }) => id) }, DEFAULT_PREFIX_LENGTHS));
      for (const { grid, geocode } of all)
        assert.ok(slots.has(slotOf(grid, geocode, DEFAULT_PREFIX_LENGTHS[grid])));
    }),
    { seed: 42 },
  );
  const idsIn = (...ids: string[]) => [...candidateSlots({ ids }, DEFAULT_PREFIX_LENGTHS)];
  const derived = `${tile({}).id}_filled-0a1b2c3d`;
  assert.deepEqual(idsIn(derived), [slotOf('geohash', '9q8y', 4)]);
  assert.deepEqual(idsIn('no-tile', 'also_none', 'naip_m_q0123x'), []);
  // A scene id may contain text that looks like a cell.
  const both = [slotOf('geohash', '9q8y', 4), slotOf('quadtile', '01', 9)];
  assert.deepEqual(idsIn('a_s_q01_g9q8yy'), ascending(both));
});

test('ids and ranges together cover only what is in both', () => {
  const ids = [tile({ geocode: '9q8yy' }).id, tile({ grid: 'quadtile', geocode: '0230102' }).id];
  const of = (range: CellKeyRange) => [...candidateSlots({ ids, ranges: [range] }, DEFAULT_PREFIX_LENGTHS)];
  assert.deepEqual(of(below('geohash', '9q')), [slotOf('geohash', '9q8y', 4)]);
  assert.deepEqual(of(below('quadtile', '02')), [slotOf('quadtile', '0230102', 9)]);
  assert.deepEqual(of(below('quadtile', '1')), []);
  assert.equal(quadtile.idPrefix, 'q');
});
