/** Scenes anywhere on Earth, and the cells that they are cut into. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { computePixelGrids, type Grid, geohash, gridByName, grids, quadtile } from '../../src/grid/index.js';
import { gridToSourceTransform } from '../../src/ingest/georeferencing/georeferenced-grid-transform.js';
import { measurePixelSize } from '../../src/ingest/georeferencing/georeferenced-pixel-size.js';
import { coverScene } from '../../src/ingest/plan/plan-scene-cells.js';
import { scenePrecision } from '../../src/ingest/plan/plan-scene-tiles.js';
import { sourceRowsForCell } from '../../src/ingest/plan/plan-source-rows.js';
import {
  buildControlGrid,
  type ControlGrid,
  createTransform,
  crsFromEpsg,
  mapToPixel,
  pixelToMap,
  warp,
} from '../../src/raster/index.js';
import { headerOf, MODIS, type Placed, rasterAround, rasters, sceneOf } from './geometry-rasters.js';

const turned = (lon: number) => lon - 360 * Math.floor((lon + 180) / 360);

/** Grid coordinates of a pixel position; undefined if the round trip shows that it is not on the grid. */
function gridPlace(raster: Placed, grid: Grid, column: number, row: number): [number, number] | undefined {
  const [x, y] = pixelToMap(raster.transform, column, row);
  const [lonThere, lat] = createTransform(raster.crs, 'EPSG:4326')(x, y);
  const lon = turned(lonThere);
  if (!(Math.abs(lat) <= 90) || !(lon < 180)) return undefined;
  const [u, v] = createTransform('EPSG:4326', raster.crs)(lon, lat);
  const period = raster.crs.geographic ? 360 : raster.crs.epsg === 3857 ? 2 * 20037508.342789244 : 34734060;
  const off = raster.crs.geographic || [3857, 6933].includes(raster.crs.epsg ?? 0) ? (u - x) % period : u - x;
  const { xx, yx } = raster.transform;
  const close = Math.hypot(xx, yx) / 4;
  if (Math.min(Math.abs(off), Math.abs(Math.abs(off) - period)) > close || Math.abs(v - y) > close)
    return undefined;
  // A raster wider than the Earth shows a place twice; tiles take the half turns around its middle.
  if (raster.crs.geographic || [3857, 6933].includes(raster.crs.epsg ?? 0)) {
    const [middle] = pixelToMap(raster.transform, raster.width / 2, raster.height / 2);
    if (Math.abs(x - middle) >= period / 2) return undefined;
  }
  const place = grid.fromLonLat(lon, lat);
  return Math.abs(place[1]) <= grid.extent.north ? place : undefined;
}

const MOST = 1000;

/**
 * The cells at the finest precision, up to a given one, at which they are few enough to check each; null if they never are,
 * undefined if the scene has none.
 */
function cover(
  raster: Placed,
  grid: Grid,
  most: number,
): { precision: number; cells: string[] } | undefined | null {
  const { xx, yx } = raster.transform;
  const unit = (grid.epsg === 4326 ? 1 : 111_000) / (raster.crs.geographic ? 1 : 111_000);
  const pixel = Math.hypot(xx, yx) * unit;
  const [, y = 0] = gridPlace(raster, geohash, raster.width / 2, raster.height / 2) ?? [];
  const isPolar = grid === geohash && Math.abs(y) > 85;
  for (let precision = Math.min(most, grid.maxPrecision); precision >= 1; precision--) {
    const cell = grid.cellSize(precision);
    if (((raster.width * pixel) / cell.width) * ((raster.height * pixel) / cell.height) > MOST) continue;
    // Every cell of the last row touches the pole.
    if (isPolar && 360 / cell.width > MOST) continue;
    try {
      const cells = coverScene(sceneOf(raster), grid, precision);
      if (cells.length <= MOST) return { precision, cells };
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === 'TW_INGEST_OUTSIDE_GRID' || code === 'TW_INGEST_OFF_EARTH') return undefined;
      if (code !== 'TW_INGEST_TOO_MANY_TILES') throw error;
    }
  }
  return null;
}

const precisions = fc.integer({ min: 1, max: 24 });

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
const smallRasters = rasters.map((raster): Placed => {
  const shrink = Math.max(1, Math.max(raster.width, raster.height) / 300);
  const { transform: t } = raster;
  return {
    ...raster,
    width: Math.ceil(raster.width / shrink),
    height: Math.ceil(raster.height / shrink),
    transform: { ...t, xx: t.xx * shrink, yx: t.yx * shrink, xy: t.xy * shrink, yy: t.yy * shrink },
  };
});

test('the rows of a cell are enough for the warp, and result in the same pixels as the entire scene', () => {
  let cut = 0;
  fc.assert(
    fc.property(
      smallRasters,
      fc.constantFrom('geohash', 'quadtile'),
      precisions,
      fc.constantFrom('nearest' as const, 'bilinear' as const),
      fc.nat(),
      (raster, name, most, resampling, pick) => {
        const grid = gridByName(name);
        const covered = cover(raster, grid, most);
        if (!covered) return;
        const { width, height } = raster;
        const pixels = Uint8Array.from({ length: width * height }, (_, i) => (i * 2654435761) >>> 24);
        const scene = sceneOf(raster);
        for (let k = 0; k < 4; k++) {
          const geocode: string = covered.cells[(pick + k * 7919) % covered.cells.length]!;
          const bounds = grid.bounds(geocode);
          const size = { width: 1 + (pick % 130), height: 1 + ((pick >> 8) % 130) };
          const control = buildControlGrid(
            { bounds, ...size },
            gridToSourceTransform(grid.epsg, raster),
            raster.transform,
          );
          const [from, to] = sourceRowsForCell(scene.groups[0]!, grid, geocode);
          const warped = (start: number, end: number) => {
            const out = new Uint8Array(size.width * size.height);
            const valid = new Uint8Array(out.length).fill(1);
            const source = {
              pixels: pixels.subarray(start * width, end * width),
              window: { column: 0, row: start, width, height: end - start },
              rasterWidth: width,
              rasterHeight: height,
              nodata: undefined,
            };
            cut += warp(resampling, source, control, out, valid);
            return { out, valid };
          };
          const [some, all] = [warped(from, to), warped(0, height)];
          const message = `${raster.name} ${geocode} ${from} ${to}`;
          assert.deepEqual(some.valid, all.valid, message);
          // Next to the border of its window the bilinear kernel rounds in another way.
          const most = resampling === 'nearest' ? 0 : 1;
          assert.ok(
            some.out.every((value, i) => Math.abs(value - all.out[i]!) <= most),
            message,
          );
        }
      },
    ),
    { seed: 42, numRuns: 100 },
  );
  assert.ok(cut > 500_000, String(cut));
});

test('every pixel of a cell is where the projection maps it, even at poles and at the edge of a map', () => {
  let checked = 0;
  const worst = { pixels: 0, where: '' };
  let lost = 0;
  fc.assert(
    fc.property(smallRasters, fc.constantFrom('geohash', 'quadtile'), precisions, fc.nat(), (...given) => {
      const [raster, name, most, pick] = given;
      const grid = gridByName(name);
      const covered = cover(raster, grid, most);
      if (!covered) return;
      for (let k = 0; k < 4; k++) {
        const geocode: string = covered.cells[(pick + k * 7919) % covered.cells.length]!;
        const bounds = grid.bounds(geocode);
        const width = 1 + (pick % 130);
        const height = 1 + ((pick >> 8) % 130);
        const project = gridToSourceTransform(grid.epsg, raster);
        const control = buildControlGrid({ bounds, width, height }, project, raster.transform);
        for (let row = 0; row < height; row++) {
          for (let column = 0; column < width; column++) {
            const x = bounds.west + ((column + 0.5) / width) * (bounds.east - bounds.west);
            const y = bounds.north - ((row + 0.5) / height) * (bounds.north - bounds.south);
            const [u, v] = mapToPixel(raster.transform, ...project(x, y));
            const isInside = u >= 0 && v >= 0 && u < raster.width && v < raster.height;
            if (!isInside) continue;
            checked++;
            const [c, r] = positionOf(control, column, row);
            const off = Math.hypot(c - u, r - v);
            if (!(off < 1e9)) lost++;
            if (off < 1e9 && off > worst.pixels)
              Object.assign(worst, { pixels: off, where: `${raster.name} ${geocode} ${column}, ${row}` });
          }
        }
      }
    }),
    { seed: 42, numRuns: 100 },
  );
  assert.ok(checked > 200_000, String(checked));
  assert.equal(lost, 0);
  assert.ok(worst.pixels < 5e-3, `${worst.pixels} at ${worst.where}`);
});

/** Position of a pixel by a control grid: between four nodes; those without weight do not count. */
function positionOf(control: ControlGrid, column: number, row: number): [number, number] {
  const { step, columns } = control;
  const node = Math.floor(row / step) * columns + Math.floor(column / step);
  const [u, v] = [(column % step) / step, (row % step) / step];
  const mix = (a: number, b: number, part: number) => (part === 0 ? a : a + (b - a) * part);
  const of = (nodes: Float64Array) =>
    mix(
      mix(nodes[node]!, nodes[node + 1]!, u),
      mix(nodes[node + columns]!, nodes[node + columns + 1]!, u),
      v,
    );
  return [of(control.x), of(control.y)];
}

test('the rows of a cell include all rows of densely sampled points, and few more', () => {
  fc.assert(
    fc.property(
      rasters,
      fc.constantFrom('geohash', 'quadtile'),
      precisions,
      fc.nat(),
      (raster, name, most, pick) => {
        const grid = gridByName(name);
        const covered = cover(raster, grid, most);
        if (!covered) return;
        const geocode = covered.cells[pick % covered.cells.length]!;
        const [from, to] = sourceRowsForCell(sceneOf(raster).groups[0]!, grid, geocode);
        const { west, south, east, north } = grid.bounds(geocode);
        const project = gridToSourceTransform(grid.epsg, raster);
        const rows: number[] = [];
        let mesh = 0;
        for (let j = 1; j < 60; j++) {
          for (let i = 1; i < 60; i++) {
            const point = project(west + ((east - west) * i) / 60, south + ((north - south) * j) / 60);
            const [, row] = mapToPixel(raster.transform, ...point);
            if (row >= 0 && row < raster.height) assert.ok(row >= from && row < to, `${row} ${from} ${to}`);
            if (i > 1) mesh = Math.max(mesh, Math.abs(row - rows.at(-1)!));
            if (j > 1) mesh = Math.max(mesh, Math.abs(row - rows.at(-59)!));
            rows.push(row);
          }
        }
        // Parts of the largest cells have no place on a map of one zone.
        if (rows.some(Number.isNaN)) return;
        const slack = 2 * mesh + 4;
        const [low, high] = [Math.min(...rows) - slack, Math.max(...rows) + slack];
        assert.ok(
          from >= Math.min(low, raster.height) && to <= Math.max(high, 0),
          `${from} ${to}: ${low} ${high}`,
        );
      },
    ),
    { seed: 42, numRuns: 120 },
  );
});

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

test('pixel sizes, precisions and pixel grids are plausible everywhere', () => {
  fc.assert(
    fc.property(rasters, fc.constantFrom('geohash', 'quadtile'), (raster, name) => {
      const grid = gridByName(name);
      let resolution: { x: number; y: number };
      try {
        resolution = measurePixelSize(headerOf(raster));
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'TW_INGEST_OFF_EARTH');
        return;
      }
      assert.ok(resolution.x > 0 && resolution.y > 0, JSON.stringify(resolution));
      const precision = scenePrecision(sceneOf(raster, resolution), grid);
      assert.ok(precision >= 1 && precision <= grid.maxPrecision);
    }),
    { seed: 42, numRuns: 200 },
  );
  const pole = rasterAround('polar', crsFromEpsg(3031), [0, 0], { width: 2000, height: 2000, pixel: 10 });
  const { x, y } = measurePixelSize(headerOf(pole));
  // The map is true to scale at 71 degrees south, and 2.8 % too small at the pole.
  assert.ok(Math.abs(x - 10.28) < 0.05 && Math.abs(y - 10.28) < 0.05, `${x} ${y}`);
  assert.equal(scenePrecision(sceneOf(pole, { x, y }), geohash), 3);
  for (const geocode of geohash.cover({ west: 0, south: -90, east: 1e-3, north: -90 }, 9).slice(0, 3)) {
    assert.equal(computePixelGrids(geohash, geocode, [{ x, y }])[0]!.width, 1);
  }
});

test('rows between the corners of a wide cell, and at a pole within one, are read', () => {
  // The parallel at the north of the cell bows northwards by 30 km between its corners in the map's plane.
  const wide = rasterAround('lcc', crsFromEpsg(3978), [0, 1_500_000], {
    width: 3000,
    height: 3000,
    pixel: 500,
  });
  const pole = rasterAround('polar', crsFromEpsg(3413), [0, 0], {
    width: 3000,
    height: 3000,
    pixel: 10,
    angle: 0.3,
  });
  for (const [raster, precision] of [
    [wide, 2],
    [pole, 2],
    [pole, 3],
  ] as const) {
    for (const geocode of coverScene(sceneOf(raster), geohash, precision).slice(0, 40)) {
      const [from, to] = sourceRowsForCell(sceneOf(raster).groups[0]!, geohash, geocode);
      const { west, south, east, north } = geohash.bounds(geocode);
      const project = gridToSourceTransform(4326, raster);
      for (let k = 0; k <= 4000; k++) {
        for (const lat of [south, south + (north - south) * 0.999, north]) {
          const [, row] = mapToPixel(raster.transform, ...project(west + ((east - west) * k) / 4000.01, lat));
          if (row >= 0 && row < raster.height)
            assert.ok(row >= from && row < to, `${geocode}: ${row} ${from} ${to}`);
        }
      }
    }
  }
});
