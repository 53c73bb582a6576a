/** Scenes anywhere on Earth, and the cells that they are cut into. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Bbox, cellBbox, type Grid, geohash, grids, quadtile } from '../../src/grid/index.js';
import { coverScene, regionFilter } from '../../src/ingest/cells.js';
import { gridToSourceTransform } from '../../src/ingest/georeferencing.js';
import { scenePrecision } from '../../src/ingest/plan.js';
import { createTransform, crsFromEpsg, mapToPixel } from '../../src/raster/index.js';
import { MODIS, type Placed, rasterAround, rasters, sceneOf } from './geometry-rasters.js';
import { cover, gridPlace, precisions } from './scene-cover.js';

for (const grid of grids) {
  test(`${grid.name}: no pixel of a scene anywhere on Earth lies outside its cells`, () => {
    let checked = 0;
    fc.assert(
      fc.property(rasters, precisions, (raster, most) => {
        const { width, height } = raster;
        const covered = cover(raster, grid, most);
        if (covered === null) return;
        const cells = new Set(covered?.cells);
        for (const u of PARTS) {
          for (const v of PARTS) {
            const column = Math.min(width - 1, Math.floor(u * width)) + 0.5;
            const row = Math.min(height - 1, Math.floor(v * height)) + 0.5;
            const place = gridPlace(raster, grid, column, row);
            if (!place) continue;
            checked++;
            assert.ok(covered, `${raster.name}: pixel ${column}, ${row} is on the grid`);
            const geocode = grid.encode(...place, covered.precision);
            assert.ok(
              cells.has(geocode),
              `${raster.name}: ${geocode} at ${place} of pixel ${column}, ${row}`,
            );
          }
        }
      }),
      { seed: 42, numRuns: 120 },
    );
    assert.ok(checked > 10_000, String(checked));
  });

  test(`${grid.name}: the cells of a region are those of the whole scene that meet it`, () => {
    const unit = fc.double({ min: 0, max: 1, noNaN: true });
    let checked = 0;
    fc.assert(
      fc.property(rasters, precisions, fc.tuple(unit, unit, unit), (raster, most, [first, second, part]) => {
        const covered = cover(raster, grid, most);
        if (!covered || covered.cells.length === 0) return;
        const cellAt = (share: number) => covered.cells[Math.floor(share * (covered.cells.length - 1))]!;
        const [west, south, , north] = cellBbox(grid, cellAt(first));
        const [left, bottom, right, top] = cellBbox(grid, cellAt(second));
        // From an edge of one cell into another one. West > east crosses the antimeridian.
        const east = left + Math.max(part, 0.01) * (right - left);
        const region: Bbox = [west, Math.min(south, bottom), east, Math.max(north, top)];
        const expected = covered.cells.filter(regionFilter(grid, region));
        assert.deepEqual(coverScene(sceneOf(raster), grid, covered.precision, region), expected, raster.name);
        checked += expected.length;
      }),
      { seed: 42, numRuns: 60 },
    );
    assert.ok(checked > 200, String(checked));
  });

  test(`${grid.name}: hardly any cell lies outside of its scene`, () => {
    fc.assert(
      fc.property(rasters, precisions, (raster, most) => {
        const covered = cover(raster, grid, most);
        const cells = covered?.cells ?? [];
        const step = Math.max(1, cells.length / 60);
        for (let i = 0; i < cells.length; i += step) {
          const geocode = cells[Math.floor(i)]!;
          assert.ok(nearRaster(raster, grid, geocode), `${raster.name}: ${geocode}`);
        }
      }),
      { seed: 42, numRuns: 60 },
    );
  });

  test(`${grid.name}: cells of a scene abut, once each, from north to south and west to east`, () => {
    fc.assert(
      fc.property(rasters, precisions, (raster, most) => {
        const cells = cover(raster, grid, most)?.cells ?? [];
        const bounds = cells.map((geocode) => grid.bounds(geocode));
        for (let i = 1; i < bounds.length; i++) {
          const [a, b] = [bounds[i - 1]!, bounds[i]!];
          if (a.south === b.south) assert.ok(a.east <= b.west);
          else assert.ok(b.north <= a.south);
        }
      }),
      { seed: 42, numRuns: 30 },
    );
  });
}

const PARTS = [0, 1e-9, 0.003, 0.11, 0.26, 0.37, 0.5, 0.58, 0.71, 0.83, 0.94, 0.999, 1];

/** True if densely sampled points of a cell meet the raster, or miss it by less than their spacing. */
function nearRaster(raster: Placed, grid: Grid, geocode: string): boolean {
  const { west, south, east, north } = grid.bounds(geocode);
  const project = gridToSourceTransform(grid.epsg, raster);
  const steps = 24;
  const net: [number, number][][] = Array.from({ length: steps + 1 }, (_, j) =>
    Array.from({ length: steps + 1 }, (_, i) => {
      const u = Math.min(Math.max(i / steps, 1e-9), 1 - 1e-9);
      const v = Math.min(Math.max(j / steps, 1e-9), 1 - 1e-9);
      return mapToPixel(raster.transform, ...project(west + u * (east - west), south + v * (north - south)));
    }),
  );
  return net.some((line, j) =>
    line.some(([column, row], i) => {
      const next = [net[j]![i ? i - 1 : 1]!, net[j ? j - 1 : 1]![i]!];
      const mesh = Math.max(...next.map(([c, r]) => Math.hypot(c - column, r - row)));
      return column >= -mesh && column <= raster.width + mesh && row >= -mesh && row <= raster.height + mesh;
    }),
  );
}

/** Rasters small enough to hold their pixels. */
const utm60 = rasterAround(
  'utm',
  crsFromEpsg(32660),
  createTransform('EPSG:4326', crsFromEpsg(32660))(180, 20),
  {
    width: 400,
    height: 400,
    pixel: 100,
  },
);
const lonLat = (west: number, north: number, pixel: number, width: number, height: number): Placed => ({
  name: 'lonlat',
  crs: crsFromEpsg(4326),
  transform: { originX: west, originY: north, xx: pixel, xy: 0, yx: 0, yy: -pixel },
  width,
  height,
});

test('a scene across the antimeridian has the cells of both sides and no others', () => {
  for (const grid of grids) {
    const precision = grid === geohash ? 4 : 11;
    const cells = coverScene(sceneOf(utm60), grid, precision);
    const lons = cells.map((geocode) => grid.toLonLat(grid.bounds(geocode).west, 0)[0]);
    assert.ok(lons.some((lon) => lon > 179) && lons.some((lon) => lon < -179));
    assert.ok(lons.every((lon) => Math.abs(lon) > 179));
    for (const west of [178, -182]) {
      const found = coverScene(sceneOf(lonLat(west, 10, 0.01, 400, 100)), grid, precision);
      const { west: left } = grid.extent;
      const side = (edge: number) => {
        const [a, south] = grid.fromLonLat(edge, 9);
        const [b, north] = grid.fromLonLat(edge + 2, 10);
        return grid.cover({ west: Math.max(a, left), south, east: b, north }, precision);
      };
      assert.deepEqual(new Set(found), new Set([...side(178), ...side(-180)]));
    }
  }
});

test('a raster from 0 to 360 degrees, and one wider than the Earth, cover all cells once', () => {
  for (const raster of [
    lonLat(0, 90, 1, 360, 180),
    lonLat(-180, 90, 1, 360, 180),
    lonLat(-0.5, 90.5, 1, 360, 181),
    lonLat(-190, 90, 1, 380, 180),
  ]) {
    assert.equal(coverScene(sceneOf(raster), geohash, 2).length, 1024);
    assert.equal(coverScene(sceneOf(raster), quadtile, 4).length, 256);
  }
  const west = coverScene(sceneOf(lonLat(180, 90, 1, 180, 180)), geohash, 1);
  assert.deepEqual(west.join(''), 'bcfg89de23670145');
});

test('a scene with the pole has all cells of the last row', () => {
  const polar = (epsg: number) =>
    rasterAround('polar', crsFromEpsg(epsg), epsg > 30000 ? [2e6, 2e6] : [0, 0], {
      width: 100,
      height: 100,
      pixel: 1000,
    });
  for (const [epsg, lat] of [
    [3031, -90],
    [32761, -90],
    [3413, 90],
    [32661, 90],
  ] as const) {
    const row = geohash.cover({ west: -180, south: lat, east: 180, north: lat }, 3);
    const cells = new Set(coverScene(sceneOf(polar(epsg)), geohash, 3));
    for (const cell of row) assert.ok(cells.has(cell), `${epsg} ${cell}`);
    assert.equal(cells.size, row.length);
    assert.throws(() => coverScene(sceneOf(polar(epsg)), quadtile, 5), { code: 'TW_INGEST_OUTSIDE_GRID' });
    assert.throws(() => coverScene(sceneOf(polar(epsg)), geohash, 8), { code: 'TW_INGEST_TOO_MANY_TILES' });
  }
});

test('parts beyond the quadtile grid result in a warning', () => {
  const scene = sceneOf(lonLat(0, 90, 0.05, 200, 200));
  assert.ok(coverScene(scene, quadtile, 6).length > 0);
  assert.match(scene.warnings.join(), /about (4\d|5\d) % of the scene lies beyond the quadtile grid/);
  const inside = sceneOf(lonLat(0, 80, 0.05, 200, 200));
  coverScene(inside, quadtile, 6);
  const all = sceneOf(lonLat(0, 90, 0.05, 200, 200));
  coverScene(all, geohash, 3);
  assert.deepEqual([...inside.warnings, ...all.warnings], []);
});

test('rasters outside of the Earth are refused, hostile ones without delay', () => {
  const place = (x: number, y: number, pixel: number): Placed =>
    rasterAround('modis', MODIS, [x, y], { width: 100, height: 100, pixel });
  for (const raster of [place(19e6, 8e6, 463), place(1e300, 0, 10), lonLat(0, 500, 0.1, 100, 100)]) {
    assert.throws(() => coverScene(sceneOf(raster), geohash, 4), { code: 'TW_INGEST_OFF_EARTH' });
    assert.throws(() => scenePrecision(sceneOf(raster), geohash), { code: 'TW_INGEST_OFF_EARTH' });
  }
  for (const raster of [lonLat(-180, 90, 1e-3, 360_000, 180_000), place(0, 0, 1e6), utm60]) {
    assert.throws(() => coverScene(sceneOf(raster), geohash, 9), { code: 'TW_INGEST_TOO_MANY_TILES' });
  }
});
