import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { coverRegionByRelation, type GridBounds, grids, type Relation } from '../../src/grid/index.js';

const never = (cells: number) => new Error(`${cells} cells`);

/** A region that is a box, described like a real one: most rectangles are unclear before the last level. */
function box(region: GridBounds, forgetful: boolean) {
  return (rect: GridBounds, closest: boolean): Relation => {
    const { west, south, east, north } = rect;
    if (east <= region.west || west >= region.east || north <= region.south || south >= region.north)
      return 'outside';
    if (forgetful && !closest) return 'unclear';
    const within =
      west >= region.west && east <= region.east && south >= region.south && north <= region.north;
    return within ? 'inside' : 'touching';
  };
}

for (const grid of grids) {
  test(`${grid.name}: a box as a region covers what its bounds cover, in the same order`, () => {
    const part = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        part,
        part,
        part,
        part,
        fc.integer({ min: 1, max: 8 }),
        fc.boolean(),
        (u, v, w, h, p, slow) => {
          const { extent } = grid;
          const cell = grid.cellSize(p);
          const west = extent.west + u * (extent.east - extent.west);
          const south = extent.south + v * (extent.north - extent.south);
          const east = Math.min(extent.east, west + w * 20 * cell.width);
          const north = Math.min(extent.north, south + h * 20 * cell.height);
          if (!(east - west > cell.width / 1e3 && north - south > cell.height / 1e3)) return;
          const region = { west, south, east, north };
          assert.deepEqual(
            coverRegionByRelation(grid, p, box(region, slow), 1e6, never),
            grid.cover(region, p),
          );
        },
      ),
      { seed: 42, numRuns: 150 },
    );
  });

  test(`${grid.name}: too many cells are refused before they are listed, with about their number`, () => {
    const { extent } = grid;
    let asked = 0;
    const count = (relate: ReturnType<typeof box>) => (rect: GridBounds, closest: boolean) => {
      asked++;
      return relate(rect, closest);
    };
    const { width, height } = grid.cellSize(grid.maxPrecision);
    const row = { ...extent, south: extent.north - height / 2 };
    for (const [region, cells] of [
      [extent, ((extent.east - extent.west) / width) * ((extent.north - extent.south) / height)],
      [row, (extent.east - extent.west) / width],
    ] as const) {
      assert.throws(
        () => coverRegionByRelation(grid, grid.maxPrecision, count(box(region, false)), 1000, never),
        ({ message }: Error) => {
          const said = Number.parseFloat(message);
          return said > cells / 2 && said < cells * 2;
        },
      );
    }
    assert.ok(asked < 100_000, String(asked));
    assert.equal(
      coverRegionByRelation(grid, 3, box(extent, false), 1e6, never).length,
      grid.cover(extent, 3).length,
    );
  });
}

test('rectangles of the last level are a thousandth of a cell, and unclear ones there are covered', () => {
  for (const grid of grids) {
    const { width, height } = grid.cellSize(3);
    let closestLooks = 0;
    const unclear = (rect: GridBounds, closest: boolean): Relation => {
      const [columns, rows] = [width / (rect.east - rect.west), height / (rect.north - rect.south)];
      assert.equal(closest, Math.round(columns) === 32 && Math.round(rows) === 32);
      if (closest) closestLooks++;
      const holds = rect.west <= 1 && rect.east > 1 && rect.south <= 1 && rect.north > 1;
      return holds ? 'unclear' : 'outside';
    };
    assert.deepEqual(coverRegionByRelation(grid, 3, unclear, 10, never), [grid.encode(1, 1, 3)]);
    assert.ok(closestLooks > 0);
  }
});

test('the maximum number of cells is listed, one more is refused', () => {
  for (const grid of grids) {
    const precision = grid.name === 'geohash' ? 4 : 7;
    const { width, height } = grid.cellSize(precision);
    const corner = grid.bounds(grid.encode(1, 1, precision));
    // Ten rows of ten cells, inside or only touched.
    for (const inset of [0, 0.1]) {
      const region = {
        west: corner.west + inset * width,
        south: corner.south + inset * height,
        east: corner.west + (10 - inset) * width,
        north: corner.south + (10 - inset) * height,
      };
      assert.equal(coverRegionByRelation(grid, precision, box(region, false), 100, never).length, 100);
      assert.throws(
        () => coverRegionByRelation(grid, precision, box(region, false), 99, never),
        /^Error: \d+ cells$/,
      );
    }
  }
});
