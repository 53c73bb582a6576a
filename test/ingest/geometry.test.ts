/** The source rows and the pixel positions of cells anywhere on Earth. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { computePixelGrids, geohash, gridByName } from '../../src/grid/index.js';
import { coverScene, sourceRowsForCell } from '../../src/ingest/cells.js';
import { gridToSourceTransform, measurePixelSize } from '../../src/ingest/georeferencing.js';
import { scenePrecision } from '../../src/ingest/plan.js';
import { buildControlGrid, type ControlGrid, crsFromEpsg, mapToPixel, warp } from '../../src/raster/index.js';
import { headerOf, type Placed, rasterAround, rasters, sceneOf } from './geometry-rasters.js';
import { cover, precisions } from './scene-cover.js';

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
