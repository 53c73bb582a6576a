import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import ngeohash from 'ngeohash';
import { type Grid, type GridBounds, geohash, gridByName, grids, quadtile } from '../../src/grid/index.js';

const alphabets = { geohash: '0123456789bcdefghjkmnpqrstuvwxyz', quadtile: '0123' };

const geocodes = (grid: Grid, maxLength = grid.maxPrecision) =>
  fc
    .array(fc.constantFrom(...alphabets[grid.name]), { minLength: 1, maxLength })
    .map((digits) => digits.join(''));

/** Points of the extent, half of them on cell edges. */
const points = (grid: Grid) => {
  const { west, south, east, north } = grid.extent;
  const anywhere = fc.tuple(
    fc.double({ min: west, max: east, noNaN: true }),
    fc.double({ min: south, max: north, noNaN: true }),
  );
  const corners = geocodes(grid).map((geocode): [number, number] => {
    const bounds = grid.bounds(geocode);
    return [bounds.west, bounds.south];
  });
  return fc.oneof(anywhere, corners);
};

function check<T extends unknown[]>(
  ...args: [...{ [K in keyof T]: fc.Arbitrary<T[K]> }, (...values: T) => void]
) {
  const run = args.pop() as (...values: T) => void;
  fc.assert(
    fc.property(fc.tuple(...(args as unknown as { [K in keyof T]: fc.Arbitrary<T[K]> })), (values) =>
      run(...(values as T)),
    ),
    {
      seed: 42,
      numRuns: 300,
    },
  );
}

/** Every cell of a grid at a low precision. */
function allCells(grid: Grid, precision: number): string[] {
  let cells = Array.from(alphabets[grid.name]);
  for (let p = 1; p < precision; p++) cells = cells.flatMap((cell) => grid.children(cell));
  return cells;
}

test('known geohashes', () => {
  assert.equal(geohash.encode(10.40744, 57.64911, 9), 'u4pruydqq');
  assert.ok('u4pruydqqvj'.startsWith(geohash.encode(10.40744, 57.64911, 7)));
  assert.equal(geohash.encode(-5.6, 42.6, 5), 'ezs42');
  assert.deepEqual(geohash.bounds('ezs42'), {
    west: -5.625,
    south: 42.5830078125,
    east: -5.5810546875,
    north: 42.626953125,
  });
  assert.equal(geohash.encode(-180, -90, 3), '000');
  assert.equal(geohash.encode(180, 90, 3), 'zzz');
  assert.equal(geohash.encode(0, 0, 5), 's0000');
  assert.equal(geohash.encode(-Number.MIN_VALUE, 0, 5), 'eb' + 'pbp');
});

test('known quadkeys', () => {
  // "Bing Maps Tile System": tile (3, 5) at level 3 is quadkey 213.
  const { width } = quadtile.cellSize(3);
  const { west, north } = quadtile.extent;
  assert.equal(quadtile.encode(west + 3.5 * width, north - 5.5 * width, 3), '213');
  assert.equal(quadtile.encode(...quadtile.fromLonLat(-122.1, 47.6), 9), '021230030');
  assert.deepEqual(quadtile.bounds('0'), { west, south: 0, east: 0, north });
  assert.equal(quadtile.encode(0, 0, 2), '12');
  assert.equal(quadtile.encode(-west, north, 24), '1'.repeat(24));
  assert.equal(quadtile.encode(west, -north, 24), '2'.repeat(24));
});

test('the ngeohash package agrees except on edges', () => {
  check(points(geohash), fc.integer({ min: 1, max: 9 }), ([lon, lat], precision) => {
    const cell = geohash.encode(lon, lat, precision);
    const { west, south } = geohash.bounds(cell);
    if (lon !== west && lat !== south) assert.equal(cell, ngeohash.encode(lat, lon, precision));
  });
});

for (const grid of grids) {
  const precisions = fc.integer({ min: grid.minPrecision, max: grid.maxPrecision });

  test(`${grid.name}: a cell holds its western and southern edge, not the others`, () => {
    check(geocodes(grid), fc.double({ min: 0, max: 1, noNaN: true }), (geocode, share) => {
      const { west, south, east, north } = grid.bounds(geocode);
      const x = Math.min(west + share * (east - west), east);
      const y = Math.min(south + share * (north - south), north);
      const precision = geocode.length;
      assert.equal(grid.encode(west, south, precision), geocode);
      if (x < east) assert.equal(grid.encode(x, south, precision), geocode);
      if (y < north) assert.equal(grid.encode(west, y, precision), geocode);
      assert.equal(grid.encode(east, south, precision) === geocode, east === grid.extent.east);
      assert.equal(grid.encode(west, north, precision) === geocode, north === grid.extent.north);
    });
  });

  test(`${grid.name}: every point lies in the bounds of its cell, and coarser cells are prefixes`, () => {
    check(points(grid), precisions, ([x, y], precision) => {
      const geocode = grid.encode(x, y, precision);
      const { west, south, east, north } = grid.bounds(geocode);
      assert.ok(west <= x && (x < east || x === grid.extent.east));
      assert.ok(south <= y && (y < north || y === grid.extent.north));
      assert.ok(grid.encode(x, y, grid.maxPrecision).startsWith(geocode));
    });
  });

  test(`${grid.name}: neighbours share the same numbers on their edge`, () => {
    check(geocodes(grid), (geocode) => {
      const bounds = grid.bounds(geocode);
      if (bounds.east < grid.extent.east) {
        const right = grid.bounds(grid.encode(bounds.east, bounds.south, geocode.length));
        assert.ok(
          Object.is(right.west, bounds.east) && right.south === bounds.south && right.north === bounds.north,
        );
      }
      if (bounds.north < grid.extent.north) {
        const upper = grid.bounds(grid.encode(bounds.west, bounds.north, geocode.length));
        assert.ok(
          Object.is(upper.south, bounds.north) && upper.west === bounds.west && upper.east === bounds.east,
        );
      }
    });
  });

  test(`${grid.name}: children partition their parent`, () => {
    check(geocodes(grid, grid.maxPrecision - 1), (geocode) => {
      const parent = grid.bounds(geocode);
      const children = grid.children(geocode);
      const parts = children.map((child) => grid.bounds(child));
      assert.deepEqual([...children].sort(), children);
      assert.equal(Math.min(...parts.map((part) => part.west)), parent.west);
      assert.equal(Math.max(...parts.map((part) => part.north)), parent.north);
      const columns = new Set(parts.map((part) => part.west));
      const rows = new Set(parts.map((part) => part.south));
      assert.equal(columns.size * rows.size, children.length);
      for (const { east, north } of parts) {
        assert.ok(columns.has(east) || east === parent.east);
        assert.ok(rows.has(north) || north === parent.north);
      }
      assert.deepEqual(new Set(children), new Set(grid.cover(parent, geocode.length + 1)));
    });
  });

  test(`${grid.name}: keys sort like strings, prefixes are ranges, and keys lead back`, () => {
    check(geocodes(grid), geocodes(grid), (a, b) => {
      const ka = grid.key(a);
      const kb = grid.key(b);
      const order = a < b ? -1 : a > b ? 1 : 0;
      assert.equal(Math.sign(ka.key - kb.key || a.length - b.length), order);
      const below = kb.key >= ka.key && kb.key < ka.key + ka.span && b.length >= a.length;
      assert.equal(below, b.startsWith(a));
      assert.equal(grid.geocode(ka.key, a.length), a);
      assert.ok(Number.isSafeInteger(ka.key + ka.span));
    });
  });

  test(`${grid.name}: cover is what a test of every cell finds`, () => {
    const precision = grid.name === 'geohash' ? 2 : 5;
    const cells = allCells(grid, precision).map((geocode) => ({ geocode, ...grid.bounds(geocode) }));
    const beyond = (low: number, high: number) =>
      fc.oneof(
        fc.double({ min: low * 1.2, max: high * 1.2, noNaN: true }),
        fc.integer({ min: 0, max: 32 }).map((step) => low + (step / 32) * (high - low)),
      );
    const { extent } = grid;
    const sides = (low: number, high: number) =>
      fc
        .tuple(beyond(low, high), beyond(low, high))
        .filter(([p, q]) => p !== q)
        .map(([p, q]) => [Math.min(p, q), Math.max(p, q)] as const);
    check(
      sides(extent.west, extent.east),
      sides(extent.south, extent.north),
      ([west, east], [south, north]) => {
        const expected = cells
          .filter((cell) => cell.west < east && cell.east > west && cell.south < north && cell.north > south)
          .sort((p, q) => q.south - p.south || p.west - q.west)
          .map((cell) => cell.geocode);
        assert.deepEqual(grid.cover({ west, south, east, north }, precision), expected);
      },
    );
  });

  test(`${grid.name}: bounds without extent cover the cell that holds them`, () => {
    check(points(grid), precisions, ([x, y], precision) => {
      const point: GridBounds = { west: x, south: y, east: x, north: y };
      assert.deepEqual(grid.cover(point, precision), [grid.encode(x, y, precision)]);
    });
  });

  test(`${grid.name}: longitude and latitude lead back`, () => {
    check(
      fc.double({ min: -180, max: 180, noNaN: true }),
      fc.double({ min: -85, max: 85, noNaN: true }),
      (lon, lat) => {
        const [lon2, lat2] = grid.toLonLat(...grid.fromLonLat(lon, lat));
        assert.ok(Math.abs(lon - lon2) < 1e-11 && Math.abs(lat - lat2) < 1e-11);
      },
    );
    assert.equal(grid.fromLonLat(180, 0)[0], grid.extent.east);
  });

  test(`${grid.name}: wrong input is refused by name`, () => {
    for (const geocode of ['', 'a', 'il', '9Q8', '4!', '0'.repeat(grid.maxPrecision + 1)]) {
      assert.equal(grid.accepts(geocode), false);
      for (const use of [grid.bounds, grid.key, grid.children])
        assert.throws(() => use(geocode), { code: 'TW_GEOCODE_INVALID' });
    }
    for (const precision of [0, -1, 1.5, NaN, grid.maxPrecision + 1]) {
      assert.throws(() => grid.encode(0, 0, precision), { code: 'TW_GEOCODE_PRECISION' });
      assert.throws(() => grid.cover(grid.extent, precision), { code: 'TW_GEOCODE_PRECISION' });
      assert.throws(() => grid.cellSize(precision), { code: 'TW_GEOCODE_PRECISION' });
    }
    assert.throws(() => grid.children('0'.repeat(grid.maxPrecision)), { code: 'TW_GEOCODE_PRECISION' });
    assert.throws(() => grid.cover(grid.extent, grid.maxPrecision), { code: 'TW_GEOCODE_TOO_MANY' });
    const { east, north } = grid.extent;
    for (const [x, y] of [
      [east * 1.01, 0],
      [0, north * 1.01],
      [NaN, 0],
      [0, Infinity],
    ]) {
      assert.throws(() => grid.encode(x!, y!, 3), { code: 'TW_GEOCODE_OUTSIDE' });
    }
  });
}

test('gridByName returns each grid by its name', () => {
  assert.equal(gridByName('geohash'), geohash);
  assert.equal(gridByName('quadtile'), quadtile);
  assert.throws(() => gridByName('h3'), { code: 'TW_GEOCODE_GRID' });
});
