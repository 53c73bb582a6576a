/** Cubes whose bands lie within rows or pixels, read in pieces of all sizes. The files are those of `make.py` beside them. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { TilewrightError } from '../../src/errors.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { type Hdf5CubeHeader, readHdf5Cube } from '../../src/raster/formats/hdf5-cube.js';
import { crsFromEpsg, openHdf5Cube, type PixelArray, readWindow } from '../../src/raster/index.js';
import { tempFolder } from '../support/temp.js';
import { repository } from './gdal.js';

const folder = join(repository, 'test/fixtures/ingest/spectrometers');
const transform = () => ({ originX: 0, originY: 0, xx: 1, xy: 0, yx: 0, yy: -1 });
const CRS = crsFromEpsg(32633);

function openPrisma(name: string, errors?: { dataset: string; bits: number }) {
  const dataset = '/HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields/SWIR_Cube';
  return openHdf5Cube(join(folder, name), {
    dataset,
    bandAxis: 1,
    crs: CRS,
    transform,
    nodata: 65_535,
    ...(errors && { errors }),
  });
}

test('pieces of any size give the same pixels, and only those of the window', async () => {
  const [whole, chunked] = [
    await openPrisma('PRS_L2D_STD_20200508102508_20200508102512_0001.he5'),
    await openPrisma('prisma-chunks.he5'),
  ];
  assert.deepEqual([whole.width, whole.height, whole.bands, whole.dataType], [28, 36, 14, 'uint16']);
  const window = { column: 3, row: 9, width: 17, height: 20 };
  const bands = [10, 0, 6];
  const expected = await readWindow(whole, bands, window);
  for (const [i, band] of bands.entries())
    assert.equal(expected[i]![17 * 5 + 4], 100 + 2000 * band + 37 * (9 + 5) + 3 + 4);
  for (const header of [whole, chunked])
    for (const bytes of [1, 500, 2000, 20_000]) {
      const arrays: PixelArray[] = bands.map(() => new Uint16Array(1 + 19 * 20).fill(9));
      await readHdf5Cube(header as Hdf5CubeHeader, bands, window, { arrays, offset: 1, stride: 19 }, bytes);
      for (const [i, array] of arrays.entries())
        for (let row = 0; row < 20; row++) {
          const at = 1 + row * 19;
          assert.deepEqual(
            array.slice(at, at + 17),
            expected[i]!.slice(row * 17, row * 17 + 17),
            `${bytes} bytes`,
          );
          assert.equal(array[at - 1], 9);
        }
    }
});

test('a lookup table maps the pixels of a swath, and the others hold no data', async () => {
  const lookup = { columns: '/location/glt_x', rows: '/location/glt_y' };
  const layout = {
    dataset: '/reflectance',
    bandAxis: 2 as const,
    fill: -9999,
    nodata: -1,
    crs: CRS,
    transform,
  };
  const path = join(folder, 'emit-without-good.nc');
  const header = await openHdf5Cube(path, { ...layout, lookup });
  assert.deepEqual([header.width, header.height, header.bands, header.dataType], [44, 40, 20, 'float32']);
  const window = { column: 1, row: 2, width: 40, height: 37 };
  const bands = [19, 4];
  const expected = bands.map((band) =>
    Float32Array.from({ length: 40 * 37 }, (_, i) => {
      const [x, y] = [1 + (i % 40), 2 + Math.floor(i / 40)];
      const column = Math.floor((130 + 8 * (x - 22) - 6 * (y - 20)) / 10);
      const row = Math.floor((150 + 6 * (x - 22) + 8 * (y - 20)) / 10);
      // Line 0 of the swath has no data.
      const isInside = column >= 0 && column < 26 && row >= 1 && row < 30;
      const isHole = row === 5 && column === 6 && band === 4;
      return isInside && !isHole ? band / 32 + (32 * row + column) / 2048 : -1;
    }),
  );
  for (const bytes of [1, 1000, 10_000, 1e6]) {
    const arrays: PixelArray[] = bands.map(() => new Float32Array(40 * 37));
    await readHdf5Cube(header as Hdf5CubeHeader, bands, window, { arrays, offset: 0, stride: 40 }, bytes);
    assert.deepEqual(arrays, expected, `${bytes} bytes`);
  }
  const swath = await openHdf5Cube(path, layout);
  assert.deepEqual([swath.width, swath.height], [26, 30]);
});

test('datasets of different shapes are refused', async () => {
  const name = 'PRS_L2D_STD_20200508102508_20200508102512_0001.he5';
  const fields = '/HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields';
  await assert.rejects(openPrisma(name, { dataset: `${fields}/VNIR_PIXEL_L2_ERR_MATRIX`, bits: 1 }), {
    code: 'TW_RASTER_CORRUPT',
    message: /VNIR_PIXEL_L2_ERR_MATRIX is 36 x 10 x 28, but .*SWIR_Cube is 36 x 14 x 28/,
  });
  const layout = { bandAxis: 2 as const, crs: CRS, transform, nodata: undefined };
  const path = join(folder, 'emit-without-good.nc');
  await assert.rejects(openHdf5Cube(path, { ...layout, dataset: '/location/glt_x' }), {
    code: 'TW_RASTER_UNSUPPORTED',
    message: /glt_x is 40 x 44, and no cube/,
  });
  const lookup = { columns: '/location/glt_x', rows: '/location/no_such' };
  await assert.rejects(openHdf5Cube(path, { ...layout, dataset: '/reflectance', lookup }), {
    code: 'TW_RASTER_NO_LAYER',
  });
});

test('a table that refers to pixels outside of the swath is refused', async () => {
  const path = join(folder, 'emit-without-good.nc');
  const layout = { dataset: '/reflectance', bandAxis: 1 as const, nodata: -1, crs: CRS, transform };
  const lookup = { columns: '/location/glt_x', rows: '/location/glt_y' };
  // With the wrong dimension for bands, the swath has 20 columns.
  const header = await openHdf5Cube(path, { ...layout, lookup });
  await assert.rejects(readWindow(header, [0], { column: 0, row: 0, width: 44, height: 40 }), {
    code: 'TW_RASTER_CORRUPT',
    message: /name column 2\d and row \d+ of a swath of 20 columns/,
  });
});

test('a cube with changed bytes results in an error code and no crash', async (t) => {
  const path = join(await tempFolder(t), 'broken');
  const whole = await readFile(join(folder, 'emit-without-good.nc'));
  const tryRead = async (bytes: Uint8Array) => {
    await writeFile(path, bytes);
    const [scene] = await describeScenes(path, {});
    const { header } = scene!.groups[0]!.bands[0]!;
    await readWindow(header, [0, 19], { row: 0, column: 0, width: header.width, height: header.height });
  };
  await tryRead(whole);
  const change = fc.tuple(fc.nat(whole.length - 1), fc.nat(255));
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
      const bytes = Buffer.from(whole);
      for (const [at, value] of changes) bytes[at] = value;
      await tryRead(bytes).catch((error) => assert.ok(error instanceof TilewrightError, String(error.stack)));
    }),
    { seed: 7, numRuns: 100 },
  );
});
