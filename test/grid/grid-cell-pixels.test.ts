import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  cellBbox,
  cellSizeMetres,
  computePixelGrids,
  defaultPrecision,
  type Grid,
  geohash,
  grids,
  quadtile,
} from '../../src/grid/index.js';
import { metresPerDegree } from '../../src/grid/pixels.js';
import { random } from '../raster/images.js';

const runs = { seed: 42, numRuns: 200 };

const points = fc.tuple(
  fc.double({ min: -180, max: 180, noNaN: true }),
  fc.double({ min: -84, max: 84, noNaN: true }),
);
const cellsOf = (grid: Grid) =>
  fc
    .tuple(points, fc.integer({ min: 2, max: 6 }))
    .map(([[lon, lat], precision]) =>
      grid.encode(...grid.fromLonLat(lon, lat), grid.name === 'geohash' ? precision : precision * 2 + 4),
    );

for (const grid of grids) {
  test(`${grid.name}: the corners of a cell's box are those of its bounds`, () => {
    fc.assert(
      fc.property(cellsOf(grid), (geocode) => {
        const { west, south, east, north } = grid.bounds(geocode);
        const [w, s, e, n] = cellBbox(grid, geocode);
        assert.ok(w < e && s < n);
        const corners = [...grid.fromLonLat(w, s), ...grid.fromLonLat(e, n)];
        [west, south, east, north].forEach((edge, i) => {
          assert.ok(Math.abs(corners[i]! - edge) < 1e-6, `${corners[i]} ${edge}`);
        });
      }),
      runs,
    );
  });
}

test('metres of a degree on WGS84', () => {
  // Published lengths of a degree on WGS84.
  const near = (actual: number, expected: number) =>
    assert.ok(Math.abs(actual - expected) < 0.06, `${actual} ${expected}`);
  near(metresPerDegree(0).lon, 111319.49);
  near(metresPerDegree(0).lat, 110574.28);
  near(metresPerDegree(45).lon, 78846.81);
  near(metresPerDegree(45).lat, 111131.75);
  near(metresPerDegree(90).lat, 111693.98);
});

test('pixel grids of known cells', () => {
  // 9q8yy: 0.0439453125 degrees at 37.77: 3871 x 4878 m.
  const { width, height } = cellSizeMetres(geohash, '9q8yy');
  assert.ok(Math.abs(width - 3871) < 2 && Math.abs(height - 4878) < 2, `${width} ${height}`);
  const sizes = [10, 20, 60].map((x) => ({ x, y: x }));
  assert.deepEqual(computePixelGrids(geohash, '9q8yy', sizes), [
    { width: 378, height: 486 },
    { width: 189, height: 243 },
    { width: 63, height: 81 },
  ]);
  assert.deepEqual(
    computePixelGrids(geohash, '9q8yy', [
      { x: 15, y: 15 },
      { x: 30, y: 30 },
    ]),
    [
      { width: 252, height: 326 },
      { width: 126, height: 163 },
    ],
  );
  // Ratio 1.5 is not whole: each is rounded by itself.
  assert.deepEqual(
    computePixelGrids(geohash, '9q8yy', [
      { x: 20, y: 20 },
      { x: 30, y: 30 },
    ]),
    [
      { width: 189, height: 244 },
      { width: 126, height: 163 },
    ],
  );
  assert.deepEqual(computePixelGrids(geohash, '9q8yy', [{ x: 1e6, y: 1e6 }]), [{ width: 1, height: 1 }]);
  // Zoom 14 at the equator: 2446 m, 244.6 pixels of 10 m.
  const equator = quadtile.encode(0, 0, 14);
  assert.deepEqual(computePixelGrids(quadtile, equator, sizes), [
    { width: 256, height: 256 },
    { width: 128, height: 128 },
    { width: 64, height: 64 },
  ]);
});

test('pixel grids: rounded pixels are near the nominal size, finer groups fit into coarser ones', () => {
  for (const grid of grids) {
    fc.assert(
      fc.property(
        cellsOf(grid),
        fc.double({ min: 0.5, max: 500, noNaN: true }),
        fc.integer({ min: 1, max: 6 }),
        (geocode, fine, ratio) => {
          const [coarse, finer] = computePixelGrids(grid, geocode, [
            { x: fine * ratio, y: fine * ratio },
            { x: fine * 0.9998, y: fine * 0.9998 },
          ]);
          assert.equal(finer!.width % coarse!.width, 0);
          assert.equal(finer!.height % coarse!.height, 0);
          const ground = cellSizeMetres(grid, geocode);
          if (grid.name === 'geohash') {
            assert.equal(finer!.width, coarse!.width * ratio);
            const metres = geohash.cellSize(geocode.length).height * metresPerDegree(45).lat;
            assert.equal(coarse!.height, Math.max(1, Math.round(metres / (fine * ratio))));
            // Half of an eighth of an octave, and half a pixel of rounding.
            const count = ground.width / (fine * ratio);
            const bound = count * (2 ** (1 / 16) - 1) + 0.5;
            if (count >= 1) assert.ok(Math.abs(coarse!.width - count) <= bound, `${coarse!.width} ${count}`);
          } else {
            assert.equal(Math.log2(finer!.width) % 1, 0);
            assert.ok(ground.width / finer!.width <= fine * 1.001);
            assert.ok(finer!.width === 1 || ground.width / (finer!.width / 2) > fine * 0.9998);
          }
        },
      ),
      runs,
    );
  }
});

test('most blocks of 7 x 7 geohash cells have one pixel grid', () => {
  for (const [precision, metres, least] of [
    [4, 30, 0.6],
    [5, 10, 0.9],
    [6, 1, 0.95],
  ] as const) {
    let [blocks, shared] = [0, 0];
    const next = random(7);
    for (; blocks < 400; blocks++) {
      const [lon, lat] = [next() * 340 - 170, next() * 140 - 70];
      const { width, height } = geohash.cellSize(precision);
      const sizes = new Set<string>();
      for (let y = -3; y <= 3; y++)
        for (let x = -3; x <= 3; x++) {
          const cell = geohash.encode(lon + x * width, lat + y * height, precision);
          sizes.add(JSON.stringify(computePixelGrids(geohash, cell, [{ x: metres, y: metres }])));
        }
      if (sizes.size === 1) shared++;
    }
    assert.ok(shared >= least * blocks, `precision ${precision}: ${shared} of ${blocks} blocks`);
  }
});

test('default precisions', () => {
  assert.equal(defaultPrecision(geohash, -122.4, 37.8, 10), 5);
  // Cells of precision 5 are 129 pixels wide, but their pixel grid has 126.
  assert.equal(defaultPrecision(geohash, -122.4, 37.8, 30), 4);
  assert.equal(defaultPrecision(geohash, -122.4, 35, 30), 5);
  assert.equal(defaultPrecision(geohash, 25, 60, 30), 4);
  assert.equal(defaultPrecision(geohash, -122.4, 37.8, 0.6), 7);
  assert.equal(defaultPrecision(geohash, 10, 45, 463), 3);
  assert.equal(defaultPrecision(geohash, 10, 45, 1e7), 1);
  assert.equal(defaultPrecision(quadtile, 0, 0, 10), 14);
  assert.equal(defaultPrecision(quadtile, 10, 60, 10), 13);
  fc.assert(
    fc.property(points, fc.double({ min: 0.3, max: 1000, noNaN: true }), ([lon, lat], metres) => {
      for (const grid of grids) {
        const precision = defaultPrecision(grid, lon, lat, metres);
        const width = (p: number) => cellSizeMetres(grid, grid.encode(...grid.fromLonLat(lon, lat), p)).width;
        const tolerance = grid.name === 'geohash' ? 1.045 : 1;
        assert.ok(width(precision) * tolerance >= 128 * metres || precision === 1);
        if (precision < grid.maxPrecision) assert.ok(width(precision + 1) / tolerance < 128 * metres);
      }
    }),
    runs,
  );
});
