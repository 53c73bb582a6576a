import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { runAtOnce } from '../../src/async/index.js';
import { localQueries } from '../../src/dht/index.js';
import { type Bbox, cellBbox, grids } from '../../src/grid/index.js';
import type { Geometry, Point, Shape } from '../../src/query/geometry.js';
import {
  areaOfCell,
  coverGeometry,
  PreparedGeometry,
  prepareShape,
  type SpatialOp,
  spatialConverse,
  spatialRelations,
} from '../../src/query/geometry.js';
import { createSearch, type Filter, searchTiles, TileFinder } from '../../src/query/index.js';
import { type CellKeyRange, ColumnIndex, isWithin, mergeRanges, Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';
import { scan } from './scan.js';
import { isValid, overlappingPolygons, relates, shapes } from './spatial-oracle.js';
import { cells, dataParts, tile } from './tiles.js';

const ops = Object.keys(spatialRelations) as SpatialOp[];
const cellRelations = Object.fromEntries(
  ops.map((op) => [
    op,
    (cell: Bbox, shape: PreparedGeometry) => spatialRelations[op](areaOfCell(cell), shape),
  ]),
) as Record<SpatialOp, (cell: Bbox, shape: PreparedGeometry) => boolean>;
const cellOf = (grid: string, geocode: string): Bbox =>
  cellBbox(grids.find((one) => one.name === grid)!, geocode);

test('every spatial function agrees with a topology library', () => {
  const held = new Map<string, number>();
  fc.assert(
    fc.property(shapes, fc.array(cells, { minLength: 20, maxLength: 20 }), (shape, some) => {
      const outline = new PreparedGeometry(shape);
      for (const { grid, geocode } of some) {
        const cell = cellOf(grid, geocode);
        for (const op of ops) {
          const holds = cellRelations[op](cell, outline);
          if (holds) held.set(op, (held.get(op) ?? 0) + 1);
          assert.equal(holds, relates(op, cell, shape), `${op} ${geocode} ${JSON.stringify(shape)}`);
        }
      }
    }),
    { seed: 42, numRuns: 300 },
  );
  for (const op of ops.filter((one) => one !== 's_equals'))
    assert.ok(held.get(op)! > 5, `${op} held too seldom`);
});

test('polygons of one geometry that overlap, touch, nest or repeat are one area', () => {
  const counts = new Map<string, number>();
  fc.assert(
    fc.property(overlappingPolygons, fc.array(cells, { minLength: 20, maxLength: 20 }), (shape, some) => {
      const outline = new PreparedGeometry(shape);
      const near = ['s', 'e', 'k', '7', 's0', 's1', 's2', 's3', 's00', 's03', 'ebp', '7zz', 'kpb'];
      const geohashes = near.map((geocode) => ({ grid: 'geohash', geocode }));
      for (const { grid, geocode } of [...some, ...geohashes]) {
        const cell = cellOf(grid, geocode);
        for (const op of ops) {
          const holds = cellRelations[op](cell, outline);
          if (holds) counts.set(op, (counts.get(op) ?? 0) + 1);
          assert.equal(holds, relates(op, cell, shape), `${op} ${geocode} ${JSON.stringify(shape)}`);
        }
      }
    }),
    { seed: 42, numRuns: 300 },
  );
  for (const op of ['s_within', 's_overlaps', 's_touches', 's_contains'])
    assert.ok(counts.get(op)! > 5, `${op} held too seldom`);
});

test('every spatial function is right for all points, lines, boxes and triangles on the lines of a cell', () => {
  const cell = cellOf('geohash', 's0');
  const [w, s, e, n] = cell;
  const lattice = [w - 2, w, (w + e) / 2, e, e + 2].flatMap((x) =>
    [s - 1, s, (s + n) / 2, n, n + 1].map((y): Point => [x, y]),
  );
  const shapes: Shape[] = lattice.map((coordinates) => ({ type: 'Point', coordinates }));
  for (const [i, a] of lattice.entries())
    for (const [j, b] of lattice.entries()) {
      if (a[0] <= b[0] && a[1] <= b[1]) shapes.push({ bbox: [...a, ...b] });
      if (i >= j) continue;
      shapes.push({ type: 'LineString', coordinates: (i + j) % 2 ? [a, b] : [b, a] });
      const c = lattice[(7 * i + 3 * j) % 25]!;
      const turn = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
      if (turn !== 0) shapes.push({ type: 'Polygon', coordinates: [[a, b, c, a]] });
    }
  assert.ok(shapes.length > 700, `${shapes.length}`);
  for (const shape of shapes) {
    const outline = new PreparedGeometry(shape);
    for (const op of ops)
      assert.equal(
        cellRelations[op](cell, outline),
        relates(op, cell, shape),
        `${op} ${JSON.stringify(shape)}`,
      );
  }
});

test('every spatial function is right for tiles with data in parts of a cell, on the lines of these parts', async () => {
  // s0 and its neighbour, the cell that contains it, and a cell of the other grid.
  const places = [
    { geocode: 's0' },
    { geocode: 's1' },
    { geocode: 's' },
    { grid: 'quadtile', geocode: '122' },
  ] as const;
  const [w, s, e, n] = cellOf('geohash', 's0');
  const lattice = fc
    .tuple(fc.integer({ min: -4, max: 20 }), fc.integer({ min: -4, max: 20 }))
    .map(([x, y]): Point => [w + ((e - w) * x) / 16, s + ((n - s) * y) / 16]);
  const polygonsAndLines = fc.array(lattice, { minLength: 2, maxLength: 5 }).map((points): Geometry[] => [
    { type: 'LineString', coordinates: points },
    { type: 'Polygon', coordinates: [[...points, points[0]!]] },
    { type: 'MultiPoint', coordinates: points },
  ]);
  const latticeBoxes = fc
    .tuple(lattice, lattice)
    .map(([[a, b], [c, d]]): Shape[] => [
      { bbox: [Math.min(a, c), Math.min(b, d), Math.max(a, c), Math.max(b, d)] },
      { type: 'Point', coordinates: [a, b] },
    ]);
  const held = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(dataParts, fc.constantFrom(...places)), { minLength: 12, maxLength: 12 }),
      polygonsAndLines,
      latticeBoxes,
      async (some, drawn, boxes) => {
        const records = some.map(([parts, place], i) => tile({ ...place, ...parts, scene: `s${i}` }));
        const index = new ColumnIndex();
        index.load(records.slice(0, 6));
        index.add(records.slice(6));
        for (const shape of [...drawn.filter(isValid), ...boxes])
          for (const op of ops) {
            const filter = { op, shape };
            const expected = scan(records, filter);
            held.set(op, (held.get(op) ?? 0) + expected.length);
            const text = `${op} ${JSON.stringify(shape)}`;
            assert.deepEqual((await searchTiles(index, filter)).ids, expected, text);
            const not: Filter = { op: 'not', arg: filter };
            assert.deepEqual((await searchTiles(index, not)).ids, scan(records, not), `NOT ${text}`);
          }
      },
    ),
    { seed: 42, numRuns: 40 },
  );
  for (const op of ops)
    if (op !== 's_equals') assert.ok(held.get(op)! > 2, `${op} held ${held.get(op)} times`);
});

test('the converse of a spatial function is equivalent with swapped arguments', () => {
  const boxes = [0, 1, 2].flatMap((west) =>
    [1, 2, 3].map((width): Bbox => [west, 10 - west, west + width, 10 + width - west]),
  );
  for (const op of ops)
    for (const a of boxes)
      for (const b of boxes)
        assert.equal(
          cellRelations[op](a, new PreparedGeometry({ bbox: b })),
          cellRelations[spatialConverse[op] ?? op](b, new PreparedGeometry({ bbox: a })),
          `${op} ${a} ${b}`,
        );
});

test('the cover of a point is the cell of each precision that contains it, and those below the last one', () => {
  for (const [lon, lat] of [
    [13.4, 52.5],
    [-122.41, 37.77],
    [151.2, -33.87],
  ] as Point[]) {
    const { inside, edge } = runAtOnce(
      coverGeometry(new PreparedGeometry({ type: 'Point', coordinates: [lon, lat] })),
    );
    assert.deepEqual(inside, []);
    const expected = grids.flatMap((grid) => {
      const [x, y] = grid.fromLonLat(lon, lat);
      const precisions = Array.from(
        { length: grid.maxPrecision - grid.minPrecision + 1 },
        (_, i) => grid.minPrecision + i,
      );
      return precisions.map((precision) => {
        const { key, span } = grid.key(grid.encode(x, y, precision));
        return { grid: grid.name, from: key, keys: precision === grid.maxPrecision ? span : 1 };
      });
    });
    assert.deepEqual(
      edge.map(({ grid, from, to }) => ({ grid, from, keys: to - from })),
      expected,
    );
  }
});

test('the cover of an area is not much larger than the area', () => {
  for (const bbox of [
    [13, 52, 14, 53],
    [-20, -30, 40, 10],
    [179, 0, -179, 2],
    [0.01, 0.01, 0.02, 0.02],
  ] as Bbox[]) {
    const { inside, edge } = runAtOnce(coverGeometry(new PreparedGeometry({ bbox })));
    const area = ([w, s, e, n]: Bbox) => (e < w ? e + 360 - w : e - w) * (n - s);
    for (const grid of grids) {
      const cells = grid.cover(grid.extent, grid.minPrecision);
      const all = cells.reduce((sum, cell) => sum + grid.key(cell).span, 0);
      const keys = (ranges: CellKeyRange[]) =>
        ranges.reduce((sum, one) => sum + (one.grid === grid.name ? one.to - one.from : 0), 0);
      const share = area(bbox) / (360 * (grid.name === 'geohash' ? 180 : 170));
      // Most cells of a large box are not on its edge.
      if (area(bbox) > 100) assert.ok(keys(inside) / all > 0.3 * share, `${grid.name} ${bbox}`);
      assert.ok(keys(inside) / all < 1.5 * share, `${grid.name} ${bbox}`);
      assert.ok(keys([...inside, ...edge]) / all < 4 * share, `${grid.name} ${bbox}`);
    }
  }
});

test('many points along a parallel or a meridian are the same line as few points', () => {
  const line = (at: (i: number) => Point): Shape => ({
    type: 'LineString',
    coordinates: Array.from({ length: 200 }, (_, i) => at(i)),
  });
  const lines = [line((i) => [i / 10, 2.8125]), line((i) => [5.625, i / 10]), line((i) => [i / 10, 5.625])];
  for (const shape of lines) {
    const { coordinates } = shape as { coordinates: Point[] };
    const few: Shape = { type: 'LineString', coordinates: [coordinates[0]!, coordinates.at(-1)!] };
    for (const [grid, geocode] of [
      ['geohash', 's0'],
      ['geohash', 's1'],
      ['geohash', 's2'],
      ['geohash', 's3'],
      ['geohash', 'kp'],
      ['quadtile', '122'],
      ['quadtile', '1222'],
    ] as const)
      for (const op of ops)
        assert.equal(
          cellRelations[op](cellOf(grid, geocode), new PreparedGeometry(shape)),
          relates(op, cellOf(grid, geocode), few),
          `${op} ${geocode}`,
        );
  }
});

test('a cell equals its own rectangle in all forms', () => {
  const cell = cellOf('geohash', '9q8');
  const [w, s, e, n] = cell;
  const middle: Point = [(w + e) / 2, s];
  const ring: Point[] = [[w, s], middle, [e, s], [e, n], [w, n], [w, s]];
  for (const shape of [{ bbox: cell }, { type: 'Polygon', coordinates: [ring] }] satisfies Shape[])
    assert.ok(cellRelations.s_equals(cell, new PreparedGeometry(shape)));
});

test('a cover has the key of every cell that meets the shape, and all cells below its inside do', () => {
  fc.assert(
    fc.property(shapes, fc.array(cells, { minLength: 30, maxLength: 30 }), (shape, some) => {
      const outline = new PreparedGeometry(shape);
      const { inside, edge } = runAtOnce(coverGeometry(outline));
      const [sure, maybe] = [mergeRanges(inside), mergeRanges([...inside, ...edge])];
      for (const { grid: name, geocode } of some) {
        const code = grids.findIndex((grid) => grid.name === name);
        const { key } = grids[code]!.key(geocode);
        const meets = relates('s_intersects', cellOf(name, geocode), shape);
        if (meets) assert.ok(isWithin(maybe, code, key), geocode);
        if (isWithin(sure, code, key)) assert.ok(meets, geocode);
      }
    }),
    { seed: 42, numRuns: 100 },
  );
});

test('the parts of a collection are taken together', () => {
  const cell = cellOf('geohash', 's0');
  const [w, s, e, n] = cell;
  const far: Geometry = { type: 'Point', coordinates: [100, 50] };
  const near: Geometry = { type: 'Point', coordinates: [(w + e) / 2, (s + n) / 2] };
  const collection = (...geometries: (typeof near)[]) =>
    new PreparedGeometry({ type: 'GeometryCollection', geometries } as Geometry);
  assert.ok(cellRelations.s_intersects(cell, collection(far, near)));
  assert.ok(cellRelations.s_crosses(cell, collection(far, near)));
  assert.ok(!cellRelations.s_contains(cell, collection(far, near)));
  assert.ok(cellRelations.s_contains(cell, collection(near)));
  assert.ok(cellRelations.s_disjoint(cell, collection(far)));
});

test('a search prepares its shape in turns, once, and ends with its client', async (t) => {
  const storage = await Storage.open(await tempFolder(t), { reserve: 0 });
  atEnd(t, () => storage.close());
  const finder = new TileFinder(storage, localQueries(storage.index));
  const ring = Array.from({ length: 8000 }, (_, i): Point => {
    const angle = (i / 8000) * 2 * Math.PI;
    return [30 * Math.cos(angle), 30 * Math.sin(angle)];
  });
  const shape: Shape = { type: 'Polygon', coordinates: [[...ring, ring[0]!]] };
  let turns = 0;
  let isOver = false;
  const end = finder.find(createSearch({ op: 's_intersects', shape })).then((page) => {
    isOver = true;
    return page;
  });
  for (; !isOver; turns++) await setImmediate();
  assert.equal((await end).numberMatched, 0);
  assert.ok(turns > 3, `${turns} turns`);
  assert.equal(prepareShape(shape).next().done, true);
  const search = createSearch({ op: 's_within', shape: { ...shape } });
  await assert.rejects(finder.find(search, AbortSignal.abort(new Error('gone'))), /gone/);
});

test('an outline with many points gives the same results as one with few', () => {
  const circle = (count: number): Shape => {
    const ring = Array.from({ length: count }, (_, i): Point => {
      const angle = (i / count) * 2 * Math.PI;
      return [30 * Math.cos(angle), 30 * Math.sin(angle)];
    });
    return { type: 'Polygon', coordinates: [[...ring, ring[0]!]] };
  };
  const many = circle(5000);
  const outline = new PreparedGeometry(many);
  fc.assert(
    fc.property(cells, ({ grid, geocode }) => {
      const cell = cellOf(grid, geocode);
      for (const op of ['s_intersects', 's_within'] as const)
        assert.equal(cellRelations[op](cell, outline), relates(op, cell, many));
    }),
    { seed: 42, numRuns: 60 },
  );
});

test('10,000 lines that hardly meet are an area, and lines that cross millions of times are refused', () => {
  const closed = (ring: Point[]): Shape => ({ type: 'Polygon', coordinates: [[...ring, ring[0]!]] });
  const around = (at: (i: number) => number) =>
    Array.from({ length: 9999 }, (_, i): Point => [30 * Math.cos(at(i)), 30 * Math.sin(at(i))]);
  const comb = Array.from({ length: 9998 }, (_, i): Point => [i / 200, i % 2 ? 45 : 0]);
  comb.push([60, -1], [-1, -1]);
  const flat = comb.map(([x, y]): Point => [y, x]);
  for (const ring of [comb, flat, around((i) => (i / 9999) * 2 * Math.PI)])
    assert.equal(new PreparedGeometry(closed(ring)).dimension, 2);
  // Each side of this star crosses most of the others.
  const star = closed(around((i) => i * 2.4));
  assert.throws(() => new PreparedGeometry(star), { code: 'TW_QUERY_GEOMETRY', message: /cross too often/ });
});

test('a line through a corner touches and does not cross', () => {
  const cell = cellOf('geohash', 's0');
  const [, , east, north] = cell;
  const outline = (coordinates: Point[]) => new PreparedGeometry({ type: 'LineString', coordinates });
  const past = outline([
    [east - 1, north + 1],
    [east + 1, north - 1],
  ]);
  assert.ok(cellRelations.s_touches(cell, past));
  assert.ok(!cellRelations.s_crosses(cell, past));
  const through = outline([
    [east - 1, north + 0.999],
    [east + 1, north - 1.001],
  ]);
  assert.ok(!cellRelations.s_touches(cell, through));
  assert.ok(cellRelations.s_crosses(cell, through));
});

test('the interior of a ring that crosses itself follows the even-odd rule', () => {
  const quarters = fc.integer({ min: -100, max: 100 }).map((n) => (n * 5.625) / 4);
  const half = fc.integer({ min: 1, max: 20 }).map((n) => (n * 5.625) / 4);
  const bowTies = fc.tuple(
    quarters,
    quarters.map((y) => y / 3),
    half,
    half.map((h) => h / 4),
  );
  let held = 0;
  fc.assert(
    fc.property(bowTies, fc.array(cells, { minLength: 20, maxLength: 20 }), ([x, y, w, h], some) => {
      const corner = (east: number, north: number): Point => [x + east * w, y + north * h];
      const [sw, nw, se, ne] = [corner(-1, -1), corner(-1, 1), corner(1, -1), corner(1, 1)];
      const crossed: Geometry = { type: 'Polygon', coordinates: [[sw, ne, se, nw, sw]] };
      const valid: Geometry = {
        type: 'MultiPolygon',
        coordinates: [[[sw, [x, y], nw, sw]], [[se, ne, [x, y], se]]],
      };
      const outline = new PreparedGeometry(crossed);
      for (const { grid, geocode } of some) {
        const cell = cellOf(grid, geocode);
        for (const op of ops) {
          const holds = cellRelations[op](cell, outline);
          if (holds && op !== 's_disjoint') held++;
          assert.equal(holds, relates(op, cell, valid), `${op} ${geocode} ${JSON.stringify(crossed)}`);
        }
      }
    }),
    { seed: 42, numRuns: 150 },
  );
  assert.ok(held > 300, `${held} held`);
  // The rings of a star wind around its centre twice.
  const star: Point[] = [0, 2, 4, 1, 3, 0].map((i) => [
    40 * Math.sin(i * 0.4 * Math.PI),
    40 * Math.cos(i * 0.4 * Math.PI),
  ]);
  const outline = new PreparedGeometry({ type: 'Polygon', coordinates: [star] });
  assert.equal(outline.intersects([-1, -1, 1, 1]), false);
  assert.equal(outline.covers([-1, 20, 1, 22]), true);
});
