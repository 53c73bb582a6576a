/** Missing data and unsigned integers of netCDF: netCDF4-python (test/fixtures/raster/hdf5/make-missing.py) and GDAL as oracles. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import {
  crsFromEpsg,
  listSubdatasets,
  nodataAsType,
  openHdf5Cube,
  openRaster,
  type PixelArray,
  readHdf5Points,
  readRaster,
  readWindow,
} from '../../src/raster/index.js';
import { hasGdal } from '../support/gdal.js';
import { tempFolder } from '../support/temp.js';
import { repository } from './gdal.js';

const folder = join(repository, 'test/fixtures/raster/hdf5');
const path = join(folder, 'missing.nc');
const WHOLE = { column: 0, row: 0, width: 10, height: 8 };

/** The pixels of a variable, null for missing data, and what its header says. */
async function readVariable(name: string) {
  const header = await openRaster(path, `/${name}`);
  const [pixels] = await readWindow(header, [0], WHOLE);
  const { dataType, nodata, warnings } = header;
  return { dataType, nodata, warnings, values: valid(pixels!, nodataAsType(dataType, nodata)) };
}

const valid = (pixels: PixelArray, nodata: number | undefined) =>
  Array.from(pixels, (value) => (value === nodata || Number.isNaN(value) ? null : value));

/** The numbers of a variable as make-missing.py stores them, null for invalid ones. */
const series = (first: number, step: number, isValid: (value: number) => boolean) =>
  Array.from({ length: 80 }, (_, i) => first + step * i).map((value) => (isValid(value) ? value : null));

test('valid ranges, several fill values and _Unsigned agree with netCDF4-python', async () => {
  const expected: Record<string, { dtype: string; values: (number | null)[] }> = JSON.parse(
    await readFile(join(folder, 'missing.json'), 'utf8'),
  );
  assert.equal(Object.keys(expected).length, 17);
  for (const [name, { dtype, values }] of Object.entries(expected)) {
    const found = await readVariable(name);
    assert.deepEqual([found.dataType, found.warnings], [dtype, undefined], name);
    assert.deepEqual(found.values, values, name);
  }
});

test('the nodata value is the fill value, or a number outside of the valid range', async () => {
  const nodata = async (name: string) => (await readVariable(name)).nodata;
  assert.equal(await nodata('range'), -32768);
  assert.equal(await nodata('limits'), 30);
  assert.equal(await nodata('fill_outside'), -99);
  assert.equal(await nodata('least'), NaN);
  assert.equal(await nodata('most'), 65535);
  assert.equal(await nodata('unsigned_byte'), 254);
  assert.equal(await nodata('missing_alone'), -8);
  assert.equal(await nodata('default_short'), -32767);
  assert.equal(await nodata('default_int'), 2147483647);
  assert.equal(await nodata('default_float'), Math.fround(9.969209968386869e36));
});

test('bytes whose valid range ends at 255 are unsigned, and _Unsigned = "false" makes unsigned bytes signed', async () => {
  const byte = await readVariable('byte_to_255');
  const wrapped = Array.from({ length: 80 }, (_, i) => (-128 + 3 * i + 256) % 256);
  assert.deepEqual([byte.dataType, byte.nodata, byte.values], ['uint8', undefined, wrapped]);
  const signed = await readVariable('signed_byte');
  const bytes = Int8Array.from({ length: 80 }, (_, i) => 3 * i);
  assert.deepEqual([signed.dataType, signed.nodata, signed.values], ['int8', -1, Array.from(bytes)]);
});

test('a valid range of the type of scale_factor is one of unpacked numbers', async () => {
  const { values } = await readVariable('unpacked');
  assert.deepEqual(
    values,
    series(-10, 3, (value) => value >= 0 && value <= 100),
  );
  const falling = await readVariable('unpacked_falling');
  assert.deepEqual(
    falling.values,
    series(-10, 3, (value) => 10 - 0.5 * value >= 0 && 10 - 0.5 * value <= 12),
  );
});

test('bytes have no default fill value, as in GDAL', async () => {
  const { nodata, values } = await readVariable('default_byte');
  assert.equal(nodata, undefined);
  assert.equal(values[0], -127);
});

test('a bound is rounded to the type of the numbers', async () => {
  const { values } = await readVariable('tenth');
  assert.deepEqual(values.slice(0, 9), [...Float32Array.of(0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7), null]);
});

test('a range that ends before it begins is not used, with a warning', async () => {
  const { values, nodata, warnings } = await readVariable('backwards');
  assert.deepEqual(
    values,
    series(-10, 3, () => true),
  );
  // The default of the netCDF library.
  assert.equal(nodata, -32767);
  assert.deepEqual(warnings, ['the valid range of /backwards is not used: it is from 60 to 0']);
  const scenes = await describeScenes(path, { collection: 'x' });
  assert.ok(scenes[0]!.warnings.includes(warnings![0]!));
});

test('cubes and single values', async () => {
  const layout = { bandAxis: 2 as const, crs: crsFromEpsg(4326), nodata: -500 };
  const transform = () => ({ originX: 0, originY: 0, xx: 1, xy: 0, yx: 0, yy: -1 });
  const header = await openHdf5Cube(path, { ...layout, transform, dataset: '/cube' });
  const bands = await readWindow(header, [0, 1, 2], WHOLE);
  for (const [b, band] of bands.entries())
    for (const [i, pixel] of band.entries()) {
      const value = -99 + 3 * (3 * i + b);
      const isValid = value >= -30 && value <= 60 && value !== 3 && value !== 6;
      assert.equal(pixel, isValid ? value : -500, `band ${b}, pixel ${i}`);
    }
  const points = (name: string) =>
    readHdf5Points(path, name, [
      [0, 0],
      [4, 2],
      [7, 9],
    ]);
  assert.deepEqual(await points('/fill_outside'), [NaN, 27, NaN]);
  assert.deepEqual(await points('/unsigned_byte'), [128, NaN, 109]);
  assert.deepEqual(await points('/backwards'), [-10, 116, 227]);
});

test('coordinates without a unit have that of their coordinate system', async () => {
  const { crs, transform } = await openRaster(join(folder, 'without-units.nc'), '/without_units');
  assert.equal(crs.geographic, false);
  assert.ok(Math.abs(transform.xx) > 0);
});

test('a file without a raster is refused', async (t) => {
  const empty = join(await tempFolder(t), 'empty.h5');
  const script = `const { File, ready } = await import('h5wasm/node'); await ready; new File(process.argv[1], 'w').close()`;
  execFileSync(process.execPath, ['--input-type=module', '-e', script, empty], { cwd: repository });
  await assert.rejects(openRaster(empty), {
    code: 'TW_RASTER_UNSUPPORTED',
    message: /it has no numeric dataset with rows and columns/,
  });
});

test('latitudes and longitudes in two dimensions are not layers', {
  skip: !hasGdal && 'GDAL is not installed',
}, async () => {
  const { subdatasets } = await listSubdatasets(join(folder, 'curvilinear.nc'));
  assert.deepEqual(
    subdatasets.map(({ name }) => name),
    ['pr'],
  );
});

for (const name of ['fill_outside', 'unsigned_short'])
  test(`GDAL sees the same valid pixels: ${name}`, {
    skip: !hasGdal && 'GDAL is not installed',
  }, async (t) => {
    const out = join(await tempFolder(t), 'out.tif');
    execFileSync('gdal_translate', ['-q', '-a_srs', 'EPSG:4326', `NETCDF:${path}:${name}`, out]);
    const { header, bands } = await readRaster(out);
    const { dataType, values } = await readVariable(name);
    assert.equal(dataType, header.dataType);
    assert.deepEqual(values, valid(bands[0]!, nodataAsType(header.dataType, header.nodata)));
  });
