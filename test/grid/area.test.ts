import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  cellBbox,
  cellSizeMetres,
  computePixelGrids,
  coverPolygon,
  defaultPrecision,
  type Grid,
  geohash,
  grids,
  metresPerDegree,
  quadtile,
} from '../../src/grid/index.js';

const runs = { seed: 42, numRuns: 200 };

const places = fc.tuple(
  fc.double({ min: -180, max: 180, noNaN: true }),
  fc.double({ min: -84, max: 84, noNaN: true }),
);
const cellsOf = (grid: Grid) =>
  fc
    .tuple(places, fc.integer({ min: 2, max: 6 }))
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

  test(`${grid.name}: a rectangle as a polygon covers what its bounds cover`, () => {
    fc.assert(
      fc.property(
        cellsOf(grid),
        fc.double({ min: 0.1, max: 7 }),
        fc.boolean(),
        (geocode, size, backwards) => {
          const { west, south } = grid.bounds(geocode);
          const cell = grid.cellSize(geocode.length);
          const east = Math.min(west + cell.width * size, grid.extent.east);
          const north = Math.min(south + cell.height * size, grid.extent.north);
          const ring: [number, number][] = [
            [west, south],
            [east, south],
            [east, north],
            [west, north],
            [west, south],
          ];
          if (backwards) ring.reverse();
          assert.deepEqual(
            coverPolygon(grid, ring, geocode.length),
            grid.cover({ west, south, east, north }, geocode.length),
          );
        },
      ),
      runs,
    );
  });

  test(`${grid.name}: cells under a star-shaped polygon are those that hold some of its points`, () => {
    fc.assert(
      fc.property(
        cellsOf(grid),
        fc.array(fc.double({ min: 0.3, max: 4, noNaN: true }), { minLength: 3, maxLength: 9 }),
        (geocode, radii) => {
          const precision = geocode.length;
          const cell = grid.cellSize(precision);
          const { west, south } = grid.bounds(geocode);
          const ring = radii.map((radius, i): [number, number] => {
            const angle = (2 * Math.PI * i) / radii.length;
            return [
              west + cell.width * (0.4 + radius * Math.cos(angle)),
              south + cell.height * (0.6 + radius * Math.sin(angle)),
            ];
          });
          const ys = ring.map((point) => point[1]);
          if (Math.max(...ys) > grid.extent.north || Math.min(...ys) < grid.extent.south) return;
          const covered = new Set(coverPolygon(grid, ring, precision));
          // Samples of the polygon: fractions of each triangle (any inner point, an edge), which a star shape is made of.
          const centre: [number, number] = [west + cell.width * 0.4, south + cell.height * 0.6];
          const steps = 12;
          const sampled = new Set<string>();
          for (let k = 0; k < ring.length; k++) {
            const p = ring[k]!;
            const q = ring[(k + 1) % ring.length]!;
            for (let i = 1; i < steps; i++) {
              for (let j = 1; i + j < steps; j++) {
                const at = (axis: 0 | 1) =>
                  centre[axis] + ((p[axis] - centre[axis]) * i + (q[axis] - centre[axis]) * j) / steps;
                sampled.add(grid.encode(wrap(grid, at(0)), at(1), precision));
              }
            }
          }
          for (const hit of sampled) assert.ok(covered.has(hit), `${hit} is under the polygon`);
          const box = {
            west: Math.min(...ring.map((p) => p[0])),
            east: Math.max(...ring.map((p) => p[0])),
            south: Math.min(...ys),
            north: Math.max(...ys),
          };
          if (box.west >= grid.extent.west && box.east <= grid.extent.east) {
            const inBox = new Set(grid.cover(box, precision));
            for (const hit of covered) assert.ok(inBox.has(hit));
          }
        },
      ),
      runs,
    );
  });

  test(`${grid.name}: the order of a polygon's cells is that of its bounds`, () => {
    const { width, height } = grid.cellSize(6);
    const diamond: [number, number][] = [
      [2.5 * width, 0.5 * height],
      [4.5 * width, 2.5 * height],
      [2.5 * width, 4.5 * height],
      [0.5 * width, 2.5 * height],
    ];
    const cells = coverPolygon(grid, diamond, 6);
    const all = grid.cover(
      { west: 0.5 * width, south: 0.5 * height, east: 4.5 * width, north: 4.5 * height },
      6,
    );
    assert.deepEqual(
      cells,
      all.filter((cell) => cells.includes(cell)),
    );
    // Its sides run through corners of cells, which does not count: rows of 1, 3, 5, 3 and 1 cells.
    assert.equal(all.length, 25);
    assert.equal(cells.length, 13);
  });
}

function wrap(grid: Grid, x: number): number {
  const { west, east } = grid.extent;
  return x < west ? x + (east - west) : x > east ? x - (east - west) : x;
}

test('a concave polygon does not cover its bay', () => {
  const { width: w, height: h } = geohash.cellSize(4);
  const u: [number, number][] = [
    [0, 0],
    [3 * w, 0],
    [3 * w, 3 * h],
    [2 * w, 3 * h],
    [2 * w, h],
    [w, h],
    [w, 3 * h],
    [0, 3 * h],
  ];
  const bay = geohash.encode(1.5 * w, 2.5 * h, 4);
  const cells = coverPolygon(geohash, u, 4);
  assert.equal(cells.length, 7);
  assert.ok(!cells.includes(bay));
});

test('a polygon across the antimeridian covers cells on both sides', () => {
  const ring: [number, number][] = [
    [179.5, -17],
    [180.5, -17],
    [180.5, -16],
    [179.5, -16],
  ];
  assert.deepEqual(
    coverPolygon(geohash, ring, 4).sort(),
    [
      ...geohash.cover({ west: 179.5, south: -17, east: 180, north: -16 }, 4),
      ...geohash.cover({ west: -180, south: -17, east: -179.5, north: -16 }, 4),
    ].sort(),
  );
  const back = ring.map(([x, y]): [number, number] => [x - 360, y]);
  assert.deepEqual(coverPolygon(geohash, back, 4).sort(), coverPolygon(geohash, ring, 4).sort());
});

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
    { width: 390, height: 486 },
    { width: 195, height: 243 },
    { width: 65, height: 81 },
  ]);
  assert.deepEqual(
    computePixelGrids(geohash, '9q8yy', [
      { x: 15, y: 15 },
      { x: 30, y: 30 },
    ]),
    [
      { width: 258, height: 326 },
      { width: 129, height: 163 },
    ],
  );
  // Ratio 1.5 is not whole: each is rounded by itself.
  assert.deepEqual(
    computePixelGrids(geohash, '9q8yy', [
      { x: 20, y: 20 },
      { x: 30, y: 30 },
    ]),
    [
      { width: 194, height: 244 },
      { width: 129, height: 163 },
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
            assert.equal(coarse!.height, Math.max(1, Math.round(ground.height / (fine * ratio))));
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

test('default precisions', () => {
  assert.equal(defaultPrecision(geohash, -122.4, 37.8, 10), 5);
  assert.equal(defaultPrecision(geohash, -122.4, 37.8, 30), 5);
  assert.equal(defaultPrecision(geohash, 25, 60, 30), 4);
  assert.equal(defaultPrecision(geohash, -122.4, 37.8, 0.6), 7);
  assert.equal(defaultPrecision(geohash, 10, 45, 463), 3);
  assert.equal(defaultPrecision(geohash, 10, 45, 1e7), 1);
  assert.equal(defaultPrecision(quadtile, 0, 0, 10), 14);
  assert.equal(defaultPrecision(quadtile, 10, 60, 10), 13);
  fc.assert(
    fc.property(places, fc.double({ min: 0.3, max: 1000, noNaN: true }), ([lon, lat], metres) => {
      for (const grid of grids) {
        const precision = defaultPrecision(grid, lon, lat, metres);
        const width = (p: number) => cellSizeMetres(grid, grid.encode(...grid.fromLonLat(lon, lat), p)).width;
        assert.ok(width(precision) >= 128 * metres || precision === 1);
        if (precision < grid.maxPrecision) assert.ok(width(precision + 1) < 128 * metres);
      }
    }),
    runs,
  );
});
