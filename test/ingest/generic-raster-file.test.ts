/** Rasters of no known product: their description by options, and formats and values with errors or warnings. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { rasterFile } from '../../src/ingest/formats/raster-file.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { gdalName } from '../../src/raster/index.js';
import { MAP_INFO, writeEnvi } from '../raster/envi.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { bytesOf, realData, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';
import { item, twoBands } from './raster-items.js';

const skip = !existsSync(realData) && 'no real scenes beside the repository';

test('a very long description is not used as the name of a band', async (t) => {
  const path = join(await tempFolder(t), 'field.dat');
  writeEnvi(path, {
    width: 2,
    height: 2,
    type: 'uint8',
    interleave: 'bsq',
    bands: [1, 2, 3].map((value) => new Array(4).fill(value)),
    lines: [MAP_INFO, `band names = {${'x'.repeat(200_000)}, ${'y'.repeat(200)}, short}`],
  });
  const [scene] = await describeScenes(path, { collection: 'fields', datetime: '2024-06-01' });
  assert.deepEqual(
    scene.groups.flatMap(({ bands }) => bands.map(({ name }) => name)),
    ['b1', 'y'.repeat(200), 'short'],
  );
});

test('options describe a raster, and a date may be an interval', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'field.tif'), twoBands);
  const flags = {
    collection: 'fields',
    datetime: '2024-06-01/2024-06-08',
    bands: { red: 1, haze: 2 },
    nodata: 3,
    scale: 0.1,
    offset: -1,
    platform: 'plane',
    maskBand: 2,
  };
  const [scene] = await describeScenes(path, flags);
  assert.equal(scene.id, 'field_20240601T000000Z');
  assert.equal(scene.end - scene.start, 8 * 86_400_000 - 1);
  assert.equal(scene.platform, 'plane');
  const [data, qa] = scene.groups;
  assert.deepEqual(
    [data.name, data.nodata, data.bands[0].name, data.bands[0].commonName, data.bands[0].scale],
    ['10m', 3, 'red', 'red', 0.1],
  );
  assert.deepEqual([qa.name, qa.nodata, qa.bands[0].name], ['10m-qa', null, 'haze']);
  assert.deepEqual([...scene.quality[0].codes.subarray(0, 3)], [1, 2, 2]);
  const spans: [datetime: string, start: string, end: string][] = [
    ['2016', '2016-01-01T00:00:00.000Z', '2016-12-31T23:59:59.999Z'],
    ['2016-02', '2016-02-01T00:00:00.000Z', '2016-02-29T23:59:59.999Z'],
    ['2015/2016-02', '2015-01-01T00:00:00.000Z', '2016-02-29T23:59:59.999Z'],
    ['2016-12', '2016-12-01T00:00:00.000Z', '2016-12-31T23:59:59.999Z'],
    ['2016-02-03', '2016-02-03T00:00:00.000Z', '2016-02-03T00:00:00.000Z'],
    ['2016/2016-12-31T12:00:00Z', '2016-01-01T00:00:00.000Z', '2016-12-31T12:00:00.000Z'],
  ];
  for (const [datetime, ...ends] of spans) {
    const [{ start, end }] = await describeScenes(path, { ...flags, datetime });
    assert.deepEqual(
      [start, end].map((time) => new Date(time).toISOString()),
      ends,
      datetime,
    );
  }
  const wrong = ['2016-13', '16', '2016/2015', '../2016', '2016/', '2015/2016/2017'];
  for (const datetime of [
    ...wrong,
    ...['2024-06-01/2024-06-08/2024-06-09', '2024-06-08/2024-06-01', '2024-02-30', ''],
  ]) {
    await assert.rejects(describeScenes(path, { ...flags, datetime }), { code: 'TW_INGEST_BAD_OPTION' });
  }
});

test('a nodata value that no pixel can hold, and scales that make all values equal, are refused', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'field_2024-06-01.tif'), twoBands);
  const describe = (options: object) => describeScenes(path, { collection: 'fields', ...options });
  for (const nodata of [256, -1, 0.5])
    await assert.rejects(describe({ nodata }), {
      code: 'TW_INGEST_BAD_OPTION',
      message: /--nodata .* uint8/,
    });
  for (const options of [
    { scale: 1e-320 },
    { scale: Infinity },
    { scale: 1e38 },
    { offset: 1e30 },
    { offset: Infinity },
  ])
    await assert.rejects(describe(options), { code: 'TW_INGEST_BAD_SCALE', message: /--scale/ });
  for (const options of [{ nodata: 255 }, { scale: -1e-9 }, { offset: -273.15 }])
    assert.equal((await describe(options)).length, 1);
  // The nodata value of a file often does not fit the type of its pixels; it then marks none.
  const odd = await writeRaster(join(folder, 'odd_2024-06-01.tif'), { ...twoBands, nodata: -9999 });
  assert.equal((await describeScenes(odd, { collection: 'fields' })).length, 1);
  const flat = await writeRaster(join(folder, 'flat_2024-06-01.tif'), {
    ...twoBands,
    bandTags: [{ scale: 0 }, {}],
  });
  await assert.rejects(describeScenes(flat, { collection: 'fields' }), { code: 'TW_INGEST_BAD_SCALE' });
  assert.equal((await describeScenes(flat, { collection: 'fields', scale: 2 })).length, 1);
  const float = await writeRaster(join(folder, 'float_2024-06-01.tif'), {
    dataType: 'float32',
    bands: [new Float32Array(4096).fill(1)],
  });
  await assert.rejects(describeScenes(float, { collection: 'fields', nodata: 1e300 }), {
    code: 'TW_INGEST_BAD_OPTION',
  });
  await assert.rejects(describeScenes(float, { collection: 'fields', scale: 1e-320 }), {
    code: 'TW_INGEST_BAD_SCALE',
  });
  assert.equal((await describeScenes(float, { collection: 'fields', nodata: -3.4e38 })).length, 1);
});

test('a nodata value of a file that is too large for float32 marks no pixel', async (t) => {
  const image = { dataType: 'float32' as const, bands: [new Float32Array(4096).fill(1)] };
  const path = await writeRaster(join(await tempFolder(t), 'a.tif'), { ...image, nodata: -Number.MAX_VALUE });
  const [scene] = await describeScenes(path, { collection: 'fields', datetime: '2024-06-01' });
  assert.equal(scene!.groups[0]!.nodata, null);
});

test('bytes of red, green and blue are a picture to GDAL, in the order of a picture alone', {
  skip: !hasGdal && 'no GDAL',
}, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const interpretations = async (names: string[], dataType: 'uint8' | 'uint16' = 'uint8') => {
    const collection = `${names.join('-')}-${dataType}`;
    const values = bytesOf(names.length, 64 * 64, (i, band) => 1 + ((i + band) % 250));
    const bands = dataType === 'uint8' ? values : values.map((band) => Uint16Array.from(band));
    const path = await writeRaster(join(folder, `${collection}.tif`), { dataType, bands });
    const numbers = Object.fromEntries(names.map((name, i) => [name, i + 1]));
    await ingest(node, { href: path, collection, datetime: '2024-06-01', bands: numbers });
    const tile = (await tilesOf(node)).find((one) => one.collection === collection)!;
    const file = gdalName(node.storage.tileImage(tile, tile.groups[0].name));
    const info = JSON.parse(execFileSync('gdalinfo', ['-json', file], { encoding: 'utf8' }));
    return info.bands.map((band: { colorInterpretation: string }) => band.colorInterpretation);
  };
  assert.deepEqual(await interpretations(['red', 'green', 'blue']), ['Red', 'Green', 'Blue']);
  assert.deepEqual(await interpretations(['red', 'green', 'blue', 'nir']), [
    'Red',
    'Green',
    'Blue',
    'Undefined',
  ]);
  for (const plain of [
    interpretations(['blue', 'green', 'red']),
    interpretations(['red', 'green', 'blue'], 'uint16'),
  ])
    assert.deepEqual(await plain, ['Gray', 'Undefined', 'Undefined']);
});

test('a file of several layers that is not a known product lists them', {
  skip: !hasGdal && 'no GDAL',
}, async (t) => {
  const folder = await tempFolder(t);
  const tiff = await writeRaster(join(folder, 'a.tif'), twoBands);
  const path = join(folder, 'a.nc');
  execFileSync('gdal_translate', ['-q', '-of', 'netCDF', '-co', 'FORMAT=NC', tiff, path]);
  await assert.rejects(describeScenes(path, { collection: 'c', datetime: '2020-01-01' }), (error: Error) => {
    assert.match(error.message, /2 layers: Band1, Band2\. Extract one with gdal_translate/);
    return error.message.includes(path);
  });
});

test('a file without a layer is refused', async () => {
  const candidate = {
    path: 'empty.hdf',
    fileType: 'hdf4' as const,
    entries: null,
    subdatasets: async () => ({ path: 'empty.hdf', kind: 'hdf4' as const, subdatasets: [], metadata: {} }),
    header: () => assert.fail('the header is read'),
  };
  await assert.rejects(rasterFile.describe(candidate, { collection: 'c', datetime: '2020-01-01' }), {
    code: 'TW_INGEST_NOT_RECOGNISED',
    message: /^empty\.hdf: GDAL finds no raster in it\./,
  });
});

test('JPEG 2000 and Erdas .img are plain rasters as well', {
  skip: !hasGdal && 'no GDAL',
}, async (t) => {
  const folder = await tempFolder(t);
  const tiff = await writeRaster(join(folder, 'a.tif'), twoBands);
  for (const [driver, ending] of [
    ['JP2OpenJPEG', 'jp2'],
    ['HFA', 'img'],
  ]) {
    const path = join(folder, `b.${ending}`);
    execFileSync('gdal_translate', ['-q', '-of', driver, tiff, path]);
    await writeFile(join(folder, 'b.json'), item(`b.${ending}`));
    const [scene] = await describeScenes(path, {});
    assert.equal(scene.id, 'flight-7');
    assert.deepEqual(
      scene.groups[0].bands.map(({ name }) => name),
      ['R', 'N'],
    );
  }
});

test('a real Landsat 7 cut-out described by options', { skip }, async (t) => {
  const node = await testNode(t, await tempFolder(t));
  const href = join(realData, 'landsat7-olinda/L7_ETMs.tif');
  const bands = { blue: 1, green: 2, red: 3, nir: 4, swir16: 5, swir22: 6 };
  const flags = { collection: 'olinda', datetime: '2000-08-05', bands, platform: 'landsat-7' };
  const { failed, tiles } = await ingest(node, { href, ...flags });
  assert.deepEqual(failed, []);
  assert.ok(tiles > 0);
});

test('a cube without a scale or wavelengths has a warning, unless options set them', async (t) => {
  const folder = await tempFolder(t);
  const count = 40;
  const bands = Array.from({ length: count }, (_, band) => new Array<number>(16).fill(100 + band));
  const cube = (name: string, type: 'int16' | 'float32', lines: string[]) => {
    const size = { width: 4, height: 4, interleave: 'bsq' } as const;
    writeEnvi(join(folder, `${name}.bsq`), { ...size, type, bands, lines: [MAP_INFO, ...lines] });
  };
  const wavelengths = `wavelength = {${bands.map((_, band) => 400 + 10 * band).join()}}`;
  const units = 'wavelength units = Nanometers';
  cube('unscaled', 'int16', [wavelengths, units]);
  cube('scaled', 'int16', [wavelengths, units, 'reflectance scale factor = 10000']);
  cube('floats', 'float32', [wavelengths, units]);
  cube('bare', 'int16', ['reflectance scale factor = 10000']);
  const warningsOf = async (name: string, flags: object = {}) => {
    const options = { collection: 'c', datetime: '2024-06-01', ...flags };
    const [scene] = await describeScenes(join(folder, `${name}.hdr`), options);
    return scene!.warnings.join();
  };
  assert.match(await warningsOf('unscaled'), /have no scale, .* --scale 0\.0001/);
  assert.match(await warningsOf('bare'), /40 of 40 bands have no wavelength, .* --wavelengths/);
  assert.equal(await warningsOf('unscaled', { scale: 1 }), '');
  assert.equal(await warningsOf('bare', { wavelengths: [400, 800] }), '');
  assert.equal(await warningsOf('scaled'), '');
  assert.equal(await warningsOf('floats'), '');
});
