import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  allocatePixels,
  createTransform,
  crsFromEpsg,
  type DataType,
  encodeCog,
  openRaster,
  type PixelArray,
  readRaster,
  readRowsOfRasters,
  readWindow,
  viewPixels,
} from '../../src/raster/index.js';
import { writeRaster } from '../support/rasters.js';
import { fixtures, temporaryFolder } from './gdal.js';
import { assertSamePixels, image } from './images.js';

interface Expected {
  dataType: DataType;
  transform: [number, number, number, number, number, number];
  nodata: number | null;
  lossy: boolean;
  corner: [number, number] | null;
}

const expected: Record<string, Expected> = JSON.parse(readFileSync(join(fixtures, 'expected.json'), 'utf8'));
const file = (name: string) => join(fixtures, `${name}.tif`);
const WIDTH = 75;
const HEIGHT = 53;

function reference(dataType: DataType): PixelArray[] {
  const bytes = new Uint8Array(readFileSync(join(fixtures, `${dataType}.raw`)));
  const bandBytes = bytes.length / 2;
  return [0, 1].map((band) => viewPixels(dataType, bytes.buffer, band * bandBytes, WIDTH * HEIGHT));
}

const PIXELS = /^(lzw2|deflate|predictor3|none|bigtiff|packbits|zstd|lerc|jpeg|tags)/;

for (const [name, { dataType, transform, nodata, lossy }] of Object.entries(expected)) {
  if (!PIXELS.test(name)) continue;
  test(`pixels and position of ${name}.tif`, async () => {
    const { header, bands } = await readRaster(file(name));
    assert.equal(header.dataType, dataType);
    assert.deepEqual([header.width, header.height, header.bands], [WIDTH, HEIGHT, 2]);
    assert.equal(header.nodata ?? null, nodata);
    assert.equal(header.crs.epsg, 32633);
    const { originX, xx, xy, originY, yx, yy } = header.transform;
    assert.deepEqual([originX, xx, xy, originY, yx, yy], transform);
    for (const [i, pixels] of reference(dataType).entries()) {
      const worst = Math.max(...Array.from(pixels, (value, at) => Math.abs(value - bands[i]![at]!)));
      if (lossy) assert.ok(worst <= 12, `differs by ${worst}`);
      else assertSamePixels(bands[i]!, pixels);
    }
  });
}

test('the georeferencing of every fixture agrees with GDAL', async () => {
  let seen = 0;
  for (const [name, { transform, corner }] of Object.entries(expected)) {
    if (!corner || name === 'unknown-crs') continue;
    const { transform: t, crs, width, height } = await openRaster(file(name));
    const found = [t.originX, t.xx, t.xy, t.originY, t.yx, t.yy];
    for (const [i, value] of transform.entries()) {
      assert.ok(
        Math.abs(found[i]! - value) < 1e-9 * Math.max(1, Math.abs(value)),
        `${name}: ${found} and ${transform}`,
      );
    }
    const [lon, lat] = createTransform(crs, 'EPSG:4326')(
      t.originX + t.xx * width + t.xy * height,
      t.originY + t.yx * width + t.yy * height,
    );
    assert.ok(Math.hypot(lon - corner[0], lat - corner[1]) < 1e-7, `${name}: ${lon} ${lat} and ${corner}`);
    seen++;
  }
  assert.ok(seen > 40);
});

test('points of many systems agree with PROJ', async () => {
  const points: Record<string, [lon: number, lat: number, x: number, y: number][]> = JSON.parse(
    readFileSync(join(fixtures, 'crs.json'), 'utf8'),
  );
  // Systems whose shift to WGS 84 PROJ knows better by region.
  const roughly = new Set([3979, 4617, 4322, 26901, 31287, 32233, 32333]);
  for (const [code, rows] of Object.entries(points)) {
    const crs = crsFromEpsg(Number(code));
    const to = createTransform('EPSG:4326', crs);
    const back = createTransform(crs, 'EPSG:4326');
    const metres = crs.geographic ? 111_320 : 1;
    for (const [lon, lat, x, y] of rows) {
      const [u, v] = to(lon, lat);
      const off = Math.hypot(u - x, v - y) * metres;
      assert.ok(off < (roughly.has(Number(code)) ? 5 : 0.01), `EPSG:${code}: ${off} m at ${lon}, ${lat}`);
      const [lon2, lat2] = back(u, v);
      assert.ok(Math.hypot(lon2 - lon, lat2 - lat) < 1e-7, `EPSG:${code} and back at ${lon}, ${lat}`);
    }
  }
});

test('a raster without georeferencing is refused', async () => {
  await assert.rejects(openRaster(file('no-crs')), { code: 'TW_RASTER_NO_CRS' });
  await assert.rejects(openRaster(file('no-position')), { code: 'TW_RASTER_NO_CRS' });
  // proj4js has no urban grids of Colombia.
  assert.throws(() => crsFromEpsg(6247), { code: 'TW_RASTER_UNKNOWN_CRS', message: /EPSG:6247.*gdalwarp/ });
});

test('band tags, metadata and date', async () => {
  const header = await openRaster(file('tags'));
  assert.deepEqual(header.bandTags, [
    { description: 'B04 <red> & "more"', scale: 2.75e-5, offset: -0.2 },
    { description: 'é', scale: 1, offset: 3 },
  ]);
  assert.deepEqual(header.metadata, { note: 'a < b & c' });
  assert.equal(header.dateTime, '2020:01:02 03:04:05');
});

test('blocks that were never written are nodata', async () => {
  const { bands } = await readRaster(file('sparse'));
  assert.ok(bands[0]!.every((value) => value === -7));
  assert.deepEqual(bands[1], reference('int16')[1]);
});

test('JPEG colours become red, green and blue', async () => {
  const { bands } = await readRaster(file('colours'), [2, 0, 1]);
  // GDAL smooths the colours, which are stored at half the resolution; here they are repeated.
  const wanted = readFileSync(join(fixtures, 'colours.raw'));
  for (const [i, band] of [2, 0, 1].entries()) {
    const plane = wanted.subarray(band * 80 * 64, (band + 1) * 80 * 64);
    const sum = plane.reduce((total, value, at) => total + Math.abs(value - bands[i]![at]!), 0);
    assert.ok(sum / plane.length < 2, `band ${band} differs by ${sum / plane.length} on average`);
  }
});

test('files of our own writer are read back', async (t) => {
  const path = join(temporaryFolder(t), 'own.tif');
  const original = image('float32', 700, 600, 2, {
    nodata: Number.NaN,
    bandTags: [{ description: 'a&amp;b<', scale: 0.1 }, { offset: 7 }],
    metadata: { a: '"<&>' },
  });
  writeFileSync(path, encodeCog(original));
  const { header, bands } = await readRaster(path);
  assert.deepEqual(bands, original.bands);
  assert.ok(Number.isNaN(header.nodata));
  assert.deepEqual(header.bandTags, original.bandTags);
  assert.deepEqual(header.metadata, original.metadata);
});

test('any window of any bands equals that part of the image', async () => {
  const names = ['lzw2-uint16', 'deflate-big-int16', 'none', 'none-big-tiled', 'bigtiff-big', 'zstd'];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...names),
      fc.subarray([0, 1], { minLength: 1 }),
      fc.tuple(fc.nat(WIDTH), fc.nat(WIDTH)),
      fc.tuple(fc.nat(HEIGHT), fc.nat(HEIGHT)),
      async (name, wanted, columns, rows) => {
        const header = await openRaster(file(name));
        const [left, right] = columns.sort((a, b) => a - b);
        const [top, bottom] = rows.sort((a, b) => a - b);
        const window = { column: left, row: top, width: right - left, height: bottom - top };
        const found = await readWindow(header, wanted, window);
        for (const [i, band] of wanted.entries()) {
          const whole = reference(header.dataType)[band]!;
          const part = allocatePixels(header.dataType, window.width * window.height);
          for (let y = 0; y < window.height; y++) {
            const from = (top + y) * WIDTH + left;
            part.set(whole.subarray(from, from + window.width), y * window.width);
          }
          assertSamePixels(found[i]!, part);
        }
      },
    ),
    { seed: 42, numRuns: 60 },
  );
});

test('rows are written to their place in a rolling window', async () => {
  const header = await openRaster(file('lzw2-uint16'));
  const into = [allocatePixels('uint16', 40 * WIDTH)];
  await readRowsOfRasters([{ header, bands: [1], rowStart: 16, rowEnd: 32, into, firstRow: 10 }]);
  const whole = reference('uint16')[1]!;
  assert.deepEqual(into[0]!.subarray(6 * WIDTH, 22 * WIDTH), whole.subarray(16 * WIDTH, 32 * WIDTH));
  assert.ok(into[0]!.subarray(0, 6 * WIDTH).every((value) => value === 0));
  assert.ok(into[0]!.subarray(22 * WIDTH).every((value) => value === 0));
  await assert.rejects(
    readRowsOfRasters([{ header, bands: [1], rowStart: 40, rowEnd: 54, into, firstRow: 10 }]),
    { code: 'TW_RASTER_WINDOW_OUTSIDE' },
  );
  await assert.rejects(
    readRowsOfRasters([{ header, bands: [2], rowStart: 16, rowEnd: 32, into, firstRow: 10 }]),
    { code: 'TW_RASTER_WINDOW_OUTSIDE' },
  );
});

test('longitudes and latitudes beyond a pole are refused, except those of a cell at the pole', async (t) => {
  const folder = temporaryFolder(t);
  const open = async (y: number, pixel: number) =>
    openRaster(await writeRaster(join(folder, 'a.tif'), { epsg: 4326, x: 0, y, pixel, height: 36 }));
  for (const [y, pixel] of [
    [90, 5],
    [90.5, 1],
    [90.125, 0.25],
    [91, 1],
    [-54.5, 1],
    [92.5, 5],
  ] as const)
    assert.equal((await open(y, pixel)).transform.originY, y);
  for (const [y, pixel] of [
    [160, 1],
    [92, 1],
    [90.3, 0.25],
    [-56, 1],
    [90, 10],
    [5_300_000, 10],
  ] as const)
    await assert.rejects(
      open(y, pixel),
      { code: 'TW_RASTER_NO_CRS', message: /reach latitude -?\d+.*--position/ },
      `${y}`,
    );
});
