/** Scenes anywhere on Earth, and the cells that they are cut into. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Grid, gridByName, grids } from '../../src/geocode/index.js';
import { rowsOfCell } from '../../src/ingest/cell-rows.js';
import { sceneCells } from '../../src/ingest/cells.js';
import { sourceProjection } from '../../src/ingest/source-projection.js';
import { controlGrid, mapToPixel, pixelToMap, projector, warp } from '../../src/raster/index.js';
import { type Placed, rasters, sceneOf } from './geometry-rasters.js';

const turned = (lon: number) => lon - 360 * Math.floor((lon + 180) / 360);

/** Grid coordinates of a pixel's place; undefined where it is no place of the grid: found by going there and back. */
function gridPlace(raster: Placed, grid: Grid, column: number, row: number): [number, number] | undefined {
  const [x, y] = pixelToMap(raster.transform, column, row);
  const [lonThere, lat] = projector(raster.crs, 'EPSG:4326')(x, y);
  const lon = turned(lonThere);
  if (!(Math.abs(lat) <= 90) || !(lon < 180)) return undefined;
  const [u, v] = projector('EPSG:4326', raster.crs)(lon, lat);
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

const MOST = 3000;

/**
 * The cells at the finest precision up to a given one at which they are few enough to look at each; null where they never
 * are, undefined where the scene has none.
 */
function cover(
  raster: Placed,
  grid: Grid,
  most: number,
): { precision: number; cells: string[] } | undefined | null {
  const { xx, yx } = raster.transform;
  const unit = (grid.epsg === 4326 ? 1 : 111_000) / (raster.crs.geographic ? 1 : 111_000);
  const pixel = Math.hypot(xx, yx) * unit;
  for (let precision = Math.min(most, grid.maxPrecision); precision >= 1; precision--) {
    const cell = grid.cellSize(precision);
    if (((raster.width * pixel) / cell.width) * ((raster.height * pixel) / cell.height) > MOST) continue;
    try {
      const cells = sceneCells(sceneOf(raster), grid, precision);
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
      { seed: 42, numRuns: 150 },
    );
    assert.ok(checked > 50_000, String(checked));
  });

  test(`${grid.name}: hardly a cell lies beside its scene`, () => {
    fc.assert(
      fc.property(rasters, precisions, (raster, most) => {
        const covered = cover(raster, grid, most);
        for (const geocode of covered?.cells ?? []) assert.ok(nearRaster(raster, grid, geocode), geocode);
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

/** Whether a close net of points over a cell meets the raster, or passes it by less than its own mesh. */
function nearRaster(raster: Placed, grid: Grid, geocode: string): boolean {
  const { west, south, east, north } = grid.bounds(geocode);
  const project = sourceProjection(grid.epsg, raster);
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

test('the rows of a cell are enough for the warp, and a cell cut from them is that cut from the whole', () => {
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
          const control = controlGrid(
            { bounds, ...size },
            sourceProjection(grid.epsg, raster),
            raster.transform,
          );
          const [from, to] = rowsOfCell(scene.groups[0]!, grid, geocode);
          const warped = (start: number, end: number) => {
            const out = new Uint8Array(size.width * size.height);
            const valid = new Uint8Array(out.length).fill(1);
            const source = {
              pixels: pixels.subarray(start * width, end * width),
              window: { column: 0, row: start, width, height: end - start },
              sceneWidth: width,
              sceneHeight: height,
              nodata: undefined,
            };
            cut += warp(resampling, source, control, out, valid);
            return { out, valid };
          };
          assert.deepEqual(warped(from, to), warped(0, height), `${raster.name} ${geocode} ${from} ${to}`);
        }
      },
    ),
    { seed: 42, numRuns: 100 },
  );
  assert.ok(cut > 500_000, String(cut));
});

test('the rows of a cell are all rows that a close net of its points falls into, and few more', () => {
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
        const [from, to] = rowsOfCell(sceneOf(raster).groups[0]!, grid, geocode);
        const { west, south, east, north } = grid.bounds(geocode);
        const project = sourceProjection(grid.epsg, raster);
        for (let j = 1; j < 60; j++) {
          for (let i = 1; i < 60; i++) {
            const point = project(west + ((east - west) * i) / 60, south + ((north - south) * j) / 60);
            const [, row] = mapToPixel(raster.transform, ...point);
            if (row >= 0 && row < raster.height) assert.ok(row >= from && row < to, `${row} ${from} ${to}`);
          }
        }
      },
    ),
    { seed: 42, numRuns: 150 },
  );
});
