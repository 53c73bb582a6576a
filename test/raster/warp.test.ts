import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  allocatePixels,
  buildControlGrid,
  createTransform,
  crsFromEpsg,
  DATA_TYPES,
  type DataType,
  encodeCog,
  fillValueFor,
  type PixelArray,
  type Resampling,
  readRaster,
  sourceExtent,
  viewPixels,
  type WarpSource,
  type WarpTarget,
  warp,
} from '../../src/raster/index.js';
import { fixtures, gdal, gdalPixels, needsGdal, temporaryFolder } from './gdal.js';
import { plainWarp } from './grids.js';
import { image, random } from './images.js';

interface Warped {
  out: PixelArray;
  valid: Uint8Array;
  count: number;
}

async function warpFile(path: string, destination: WarpTarget, resampling: Resampling): Promise<Warped> {
  const { header, bands } = await readRaster(path);
  const grid = buildControlGrid(destination, createTransform('EPSG:4326', header.crs), header.transform);
  const size = destination.width * destination.height;
  const out = allocatePixels(header.dataType, size);
  const valid = new Uint8Array(size).fill(1);
  const source: WarpSource = {
    pixels: bands[0]!,
    window: { column: 0, row: 0, width: header.width, height: header.height },
    rasterWidth: header.width,
    rasterHeight: header.height,
    nodata: header.nodata,
  };
  const count = warp(resampling, source, grid, out, valid);
  assert.equal(
    count,
    valid.reduce((sum, flag) => sum + flag, 0),
  );
  return { out, valid, count };
}

/** Share of pixels that differ by more than `tolerance`, and the largest difference among the rest. */
function differing(found: PixelArray, wanted: PixelArray, tolerance: number): number {
  let differ = 0;
  for (let i = 0; i < wanted.length; i++) {
    const same = Object.is(found[i], wanted[i]) || Math.abs(found[i]! - wanted[i]!) <= tolerance;
    if (!same) differ++;
  }
  return differ / wanted.length;
}

const cases: Record<string, WarpTarget['bounds'] & { dataType: DataType }> = JSON.parse(
  readFileSync(join(fixtures, 'warp.json'), 'utf8'),
);

for (const [name, { dataType, ...bounds }] of Object.entries(cases)) {
  test(`warping a ${name} source agrees with exact gdalwarp`, async () => {
    const destination = { bounds, width: 130, height: 90 };
    for (const [resampling, method] of [
      ['nearest', 'near'],
      ['bilinear', 'bilinear'],
    ] as const) {
      const { out, count } = await warpFile(join(fixtures, `warp-${name}.tif`), destination, resampling);
      const bytes = new Uint8Array(readFileSync(join(fixtures, `warp-${name}-${method}.raw`)));
      const wanted = viewPixels(dataType, bytes.buffer, 0, out.length);
      assert.ok(count > out.length / 4);
      // Bilinear values move by their slope times the error of the control grid.
      const tolerance = resampling === 'nearest' ? 0 : dataType === 'float32' ? 0.001 : 1;
      const share = differing(out, wanted, tolerance);
      assert.ok(share <= 0.001, `${method}: ${(share * 100).toFixed(3)} % of pixels differ`);
    }
  });
}

test('a large UTM scene agrees with exact gdalwarp', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'scene.tif');
  const scene = image('uint16', 1400, 1100, 1, { nodata: 0 });
  // Without the outliers, whose slopes make much of the grid's small error.
  scene.bands[0] = scene.bands[0]!.map((value) => (value === 0 ? 0 : 1 + (value % 5000)));
  scene.transform = { originX: 420_000, originY: 5_000_000, pixelWidth: 10, pixelHeight: 10 };
  writeFileSync(path, encodeCog(scene));
  const bounds = { west: 14.02, south: 45.07, east: 14.12, north: 45.14 };
  const destination = { bounds, width: 900, height: 850 };
  for (const [resampling, method] of [
    ['nearest', 'near'],
    ['bilinear', 'bilinear'],
  ] as const) {
    const raw = join(folder, method);
    const extent = [bounds.west, bounds.south, bounds.east, bounds.north].map(String);
    gdal(
      'gdalwarp',
      '-q',
      '-et',
      '0',
      '-r',
      method,
      '-t_srs',
      'EPSG:4326',
      '-te',
      ...extent,
      '-ts',
      '900',
      '850',
      path,
      raw,
    );
    const [wanted] = gdalPixels(raw, 'uint16');
    const { out } = await warpFile(path, destination, resampling);
    const share = differing(out, wanted!, resampling === 'nearest' ? 0 : 2);
    assert.ok(share <= 0.001, `${method}: ${(share * 100).toFixed(3)} % of pixels differ`);
  }
});

/** Half a count, and what weights in whole numbers add: an eighth of a count for 16 bits. */
const ROUNDING: Record<string, number> = {
  uint8: 0.54,
  int8: 0.54,
  uint16: 0.67,
  int16: 0.67,
  uint32: 0.51,
  int32: 0.51,
};

test('every data type agrees with a plain implementation under any affine map', () => {
  const angle = fc.double({ min: -3.2, max: 3.2, noNaN: true });
  fc.assert(
    fc.property(
      fc.constantFrom(...DATA_TYPES),
      fc.constantFrom<Resampling>('nearest', 'bilinear'),
      fc.constantFrom(undefined, 0, 7, Number.NaN),
      fc.integer({ min: 1, max: 90 }),
      fc.integer({ min: 1, max: 70 }),
      angle,
      fc.double({ min: 0.2, max: 3, noNaN: true }),
      fc.tuple(fc.double({ min: -20, max: 60, noNaN: true }), fc.double({ min: -20, max: 60, noNaN: true })),
      fc.integer(),
      (dataType, resampling, nodata, width, height, turn, scale, [shiftX, shiftY], seed) => {
        const next = random(seed);
        const pixels = allocatePixels(dataType, 41 * 37).map(() =>
          next() < 0.1 ? 7 : next() < 0.1 ? 0 : 250 * next(),
        );
        if (dataType.startsWith('float') && seed % 2) pixels[5] = Number.NaN;
        const cos = Math.cos(turn) * scale;
        const sin = Math.sin(turn) * scale;
        // Destination: 1 unit a pixel, north up; source: pixels of 1 unit.
        const at = (c: number, r: number): [number, number] => [
          c * cos - r * sin + shiftX,
          c * sin + r * cos + shiftY,
        ];
        const grid = buildControlGrid(
          { bounds: { west: 0, east: width, north: 0, south: -height }, width, height },
          (x, y) => {
            const [u, v] = at(x, -y);
            return [u, -v];
          },
          { originX: 0, originY: 0, xx: 1, xy: 0, yx: 0, yy: -1 },
        );
        const out = allocatePixels(dataType, width * height);
        const valid = new Uint8Array(width * height).fill(1);
        const source = {
          pixels,
          window: { column: 0, row: 0, width: 41, height: 37 },
          rasterWidth: 41,
          rasterHeight: 37,
          nodata,
        };
        const count = warp(resampling, source, grid, out, valid, seed % 3 !== 0);
        const wanted = plainWarp(resampling, pixels, 41, 37, nodata, at, width, height);
        let data = 0;
        let wrong = 0;
        for (const [i, value] of wanted.entries()) {
          if (valid[i]) data++;
          else assert.ok(Object.is(out[i], fillValueFor(dataType, nodata)));
          const same =
            value === undefined
              ? valid[i] === 0
              : valid[i] === 1 &&
                Math.abs(out[i]! - value) <=
                  (resampling === 'nearest' ? 0 : dataType.startsWith('float') ? 0.01 : ROUNDING[dataType]);
          // Where a bilinear mean is the nodata value, it moves by one.
          if (
            !same &&
            !(
              resampling === 'bilinear' &&
              value !== undefined &&
              nodata !== undefined &&
              Math.abs(value - nodata) <= 0.51
            )
          ) {
            wrong++;
          }
        }
        assert.equal(count, data);
        // Centres on an edge between pixels may fall to either side.
        assert.ok(wrong <= Math.max(1, wanted.length * 0.002), `${wrong} of ${wanted.length} differ`);
      },
    ),
    { seed: 42, numRuns: 300 },
  );
});

test('a window of the scene gives what the whole scene gives, and too small a window is refused', async () => {
  const { header, bands } = await readRaster(join(fixtures, 'warp-utm.tif'));
  const { dataType: _, ...bounds } = cases['utm']!;
  const inner = {
    west: bounds.west + 0.02,
    east: bounds.east - 0.015,
    south: bounds.south + 0.015,
    north: bounds.north - 0.02,
  };
  const grid = buildControlGrid(
    { bounds: inner, width: 50, height: 40 },
    createTransform('EPSG:4326', header.crs),
    header.transform,
  );
  const { top, bottom } = sourceExtent(grid);
  const size = { rasterWidth: header.width, rasterHeight: header.height, nodata: header.nodata };
  const run = (firstRow: number, endRow: number) => {
    const out = allocatePixels('uint16', 2000);
    const window = { column: 0, row: firstRow, width: header.width, height: endRow - firstRow };
    const pixels = bands[0]!.slice(firstRow * header.width, endRow * header.width);
    warp('bilinear', { pixels, window, ...size }, grid, out, new Uint8Array(2000));
    return out;
  };
  const first = Math.floor(top) - 1;
  const end = Math.ceil(bottom) + 1;
  assert.ok(first > 5 && end < header.height - 5);
  assert.deepEqual(run(first, end), run(0, header.height));
  assert.throws(() => run(first + 3, end), { code: 'TW_RASTER_WINDOW_OUTSIDE' });
  assert.throws(() => run(first, end - 3), { code: 'TW_RASTER_WINDOW_OUTSIDE' });
});

test('the control grid is as exact as it says, at cells of any size', () => {
  const crs = crsFromEpsg(32633);
  const project = createTransform('EPSG:4326', crs);
  for (const [degrees, pixel] of [
    [0.04, 10],
    [0.35, 30],
    [11, 3000],
  ] as const) {
    const width = 333;
    const transform = { originX: 0, originY: 6_000_000, xx: pixel, xy: 0, yx: 0, yy: -pixel };
    const bounds = { west: 14.3, south: 45, east: 14.3 + degrees, north: 45 + degrees };
    const grid = buildControlGrid({ bounds, width, height: width }, project, transform);
    assert.ok((grid.columns - 2) * grid.step < width && (grid.columns - 1) * grid.step >= width);
    const next = random(5);
    let worst = 0;
    for (let n = 0; n < 2000; n++) {
      const column = Math.floor(next() * width);
      const row = Math.floor(next() * width);
      const [x, y] = project(
        bounds.west + ((column + 0.5) / width) * degrees,
        bounds.north - ((row + 0.5) / width) * degrees,
      );
      const i = Math.floor(column / grid.step);
      const j = Math.floor(row / grid.step);
      const u = (column % grid.step) / grid.step;
      const v = (row % grid.step) / grid.step;
      const mix = (values: Float64Array) => {
        const node = j * grid.columns + i;
        const upper = values[node]! * (1 - u) + values[node + 1]! * u;
        const lower = values[node + grid.columns]! * (1 - u) + values[node + grid.columns + 1]! * u;
        return upper * (1 - v) + lower * v;
      };
      worst = Math.max(worst, Math.hypot(mix(grid.x) - x / pixel, mix(grid.y) - (6_000_000 - y) / pixel));
    }
    assert.ok(worst < 5e-4, `${worst} pixels at ${degrees} degrees, step ${grid.step}`);
  }
});

test('no pixel beside a seam of the source comes from the other end of the map', () => {
  // Degrees from 20 to 380, and a Mercator map around 150 degrees east, in which x jumps at 30 degrees west.
  const degrees = (x: number, y: number): [number, number] => [x < 20 ? x + 360 : x, y];
  const around150 = createTransform('EPSG:4326', crsFromEpsg(3832));
  const turn = around150(-120, 0)[0] * 4;
  const seams = [
    {
      project: degrees,
      seam: 20,
      transform: { originX: 20, originY: 90, xx: 0.05, xy: 0, yx: 0, yy: -0.05 },
    },
    {
      project: around150,
      seam: -30,
      transform: { originX: -turn / 2, originY: 15e6, xx: 5000, xy: 0, yx: 0, yy: -5000 },
    },
  ];
  for (const { project, seam, transform } of seams) {
    const source = { width: Math.round((seam === 20 ? 360 : turn) / transform.xx), height: 5000 };
    for (const [width, before, extent] of [
      [225, 8.75, 11.25],
      [90, 0.1, 1.4],
      [300, 4.21, 5.625],
      [40, 1.17, 1.4],
    ] as const) {
      const west = seam - before;
      const bounds = { west, south: 1, east: west + extent, north: 1 + extent };
      const grid = buildControlGrid({ bounds, width, height: width }, project, transform, source);
      for (let row = 0; row < width; row += 7) {
        for (let column = 0; column < width; column++) {
          const lon = west + ((column + 0.5) / width) * extent;
          const lat = 1 + extent - ((row + 0.5) / width) * extent;
          const x = (project(lon, lat)[0] - transform.originX) / transform.xx;
          const i = Math.floor(column / grid.step);
          const node = Math.floor(row / grid.step) * grid.columns + i;
          const part = column / grid.step - i;
          // A meridian is a column here: both maps are cylindrical.
          const found = part === 0 ? grid.x[node]! : grid.x[node]! * (1 - part) + grid.x[node + 1]! * part;
          assert.ok(Math.abs(found - x) < 1e-3, `${found} for ${x} at ${lon}, step ${grid.step}`);
        }
      }
    }
  }
});

test('a coarse map of the world in Web Mercator loses no tile and no pixel at its rim', () => {
  const crs = crsFromEpsg(3857);
  const half = 20037508.342789244;
  const size = 40;
  const transform = {
    originX: -half,
    originY: half,
    xx: (2 * half) / size,
    xy: 0,
    yx: 0,
    yy: (-2 * half) / size,
  };
  const pixels = new Uint8Array(size * size).fill(7);
  const source = {
    pixels,
    window: { column: 0, row: 0, width: size, height: size },
    rasterWidth: size,
    rasterHeight: size,
    nodata: undefined,
  };
  const inner = createTransform('EPSG:4326', crs);
  const project = (x: number, y: number): [number, number] => (Math.abs(y) > 86 ? [NaN, NaN] : inner(x, y));
  // The map ends at 85.05 degrees. Nodes beyond the last pixel of a small tile may lie beyond a pole.
  for (const south of [45, -45, -90]) {
    for (const height of [5, 31, 100]) {
      const bounds = { west: 0, south, east: 45, north: south + 45 };
      for (const resampling of ['nearest', 'bilinear'] as const) {
        const scene = { width: size, height: size };
        const grid = buildControlGrid({ bounds, width: 7, height }, project, transform, scene);
        const out = new Uint8Array(7 * height);
        const valid = new Uint8Array(out.length).fill(1);
        const count = warp(resampling, source, grid, out, valid);
        const rows = Array.from({ length: height }, (_, row) => south + 45 - ((row + 0.5) / height) * 45);
        const within = rows.filter((lat) => Math.abs(lat) < 85.0511).length;
        assert.equal(count, 7 * within, `${resampling}, ${height} rows from ${south}`);
        assert.equal(out.filter((value) => value === 7).length, count);
      }
    }
  }
});

test('pixels at the rim of an orthographic view are there, and those beyond are not', () => {
  // A hemisphere: half of the pixels of the destination have no counterpart in the source.
  const radius = 1000;
  const project = (x: number, y: number): [number, number] => {
    const [lon, lat] = [(x * Math.PI) / 180, (y * Math.PI) / 180];
    if (Math.cos(lat) * Math.cos(lon) < 0) return [NaN, NaN];
    return [radius * Math.cos(lat) * Math.sin(lon), radius * Math.sin(lat)];
  };
  const transform = { originX: -1100, originY: 1100, xx: 10, xy: 0, yx: 0, yy: -10 };
  const width = 361;
  const height = 181;
  const grid = buildControlGrid(
    { bounds: { west: -180, south: -90, east: 180, north: 90 }, width, height },
    project,
    transform,
  );
  const pixels = new Uint8Array(220 * 220).fill(9);
  const window = { column: 0, row: 0, width: 220, height: 220 };
  for (const resampling of ['nearest', 'bilinear'] as const) {
    const valid = new Uint8Array(width * height).fill(1);
    const scene = { pixels, window, rasterWidth: 220, rasterHeight: 220, nodata: undefined };
    warp(resampling, scene, grid, new Uint8Array(width * height), valid);
    const wrong = valid.reduce((sum, value, at) => {
      const lon = -180 + (((at % width) + 0.5) / width) * 360;
      const lat = 90 - ((Math.floor(at / width) + 0.5) / height) * 180;
      return sum + Number((value === 1) !== !Number.isNaN(project(lon, lat)[0]));
    }, 0);
    assert.equal(wrong, 0, resampling);
  }
});

test('the grid of a cell at a pole is as exact, and few of its squares are divided', () => {
  const crs = crsFromEpsg(3413);
  let calls = 0;
  const inner = createTransform('EPSG:4326', crs);
  const project = (x: number, y: number) => {
    calls++;
    return inner(x, y);
  };
  const transform = { originX: -200_000, originY: 200_000, xx: 500, xy: 0, yx: 0, yy: -500 };
  const bounds = { west: 0, south: 78.75, east: 45, north: 90 };
  const [width, height] = [1200, 1500];
  const grid = buildControlGrid({ bounds, width, height }, project, transform, { width: 800, height: 800 });
  assert.ok(calls < (width * height) / 16, `${calls} projections`);
  const next = random(3);
  for (let n = 0; n < 3000; n++) {
    const column = Math.floor(next() * width);
    const row = Math.floor(next() ** 3 * height);
    const [x, y] = inner(0 + ((column + 0.5) / width) * 45, 90 - ((row + 0.5) / height) * 11.25);
    const [u, v] = [(x + 200_000) / 500, (200_000 - y) / 500];
    if (u < 0 || v < 0 || u > 800 || v > 800) continue;
    const [i, j] = [Math.floor(column / grid.step), Math.floor(row / grid.step)];
    const [p, q] = [(column % grid.step) / grid.step, (row % grid.step) / grid.step];
    const mix = (values: Float64Array) => {
      const node = j * grid.columns + i;
      const upper = values[node]! * (1 - p) + values[node + 1]! * p;
      const lower = values[node + grid.columns]! * (1 - p) + values[node + grid.columns + 1]! * p;
      return upper * (1 - q) + lower * q;
    };
    const off = Math.hypot(mix(grid.x) - u, mix(grid.y) - v);
    assert.ok(off < 1e-3, `${off} pixels at ${column}, ${row}, step ${grid.step}`);
  }
});
