/** Rasters of no known product: flags, a STAC Item beside the file, its own tags, its name, in this order. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { rasterFile } from '../../src/ingest/formats/generic/generic-raster-file.js';
import { describeScenes } from '../../src/ingest/formats/index.js';
import {
  datetimeOption,
  parseTimeRange,
  timesInName,
} from '../../src/ingest/formats/shared/product-acquisition-time.js';
import { MAP_INFO, writeEnvi } from '../raster/envi.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { bytesOf, realData, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const skip = !existsSync(realData) && 'no real scenes beside the repository';

/** An Item of one asset for a file of two bands. */
const item = (href: string, more: object = {}, asset: object = {}) =>
  JSON.stringify({
    type: 'Feature',
    stac_version: '1.0.0',
    id: 'flight-7',
    collection: 'drone',
    properties: { datetime: '2023-05-06T07:08:09Z', platform: 'ebee', license: 'CC-BY-4.0' },
    assets: {
      image: {
        href,
        'eo:bands': [
          { name: 'R', common_name: 'red' },
          { name: 'N', common_name: 'nir' },
        ],
        'raster:bands': [{ nodata: 9, scale: 0.5, offset: 1 }, { nodata: 9 }],
        ...asset,
      },
    },
    ...more,
  });

const twoBands = { dataType: 'uint8', bands: bytesOf(2, 64 * 64, (i, band) => (i % 50) + band) } as const;

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
    const file = node.storage.tilePath(tile, tile.groups[0].name);
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

test('the time is taken from a tag, else from the name with a warning, else it is required', async (t) => {
  const folder = await tempFolder(t);
  const describe = async (name: string, metadata = {}) => {
    const path = await writeRaster(join(folder, name), { metadata });
    const [scene] = await describeScenes(path, { collection: 'c' });
    return { time: new Date(scene.start).toISOString(), warnings: scene.warnings };
  };
  const tagged = await describe('a_2020-01-01.tif', { ACQUISITION_DATETIME: '2024-06-01T10:00:00Z' });
  assert.deepEqual(tagged, { time: '2024-06-01T10:00:00.000Z', warnings: [] });
  const named = await describe('NDVI_2013-09-14.tif');
  assert.equal(named.time, '2013-09-14T00:00:00.000Z');
  assert.match(named.warnings.join(), /its time is the date in its name/);
  assert.equal((await describe('S_20130914T101112Z_x.tif')).time, '2013-09-14T10:11:12.000Z');
  await assert.rejects(describe('S_20130914T101112_20140101.tif'), {
    code: 'TW_INGEST_NO_DATETIME',
    message: /its name holds 2013-09-14 and 2014-01-01\. Add --datetime/,
  });
  const both = await writeRaster(join(folder, 'S_20130914_20140101.tif'));
  const [flagged] = await describeScenes(both, { collection: 'c', datetime: '2013-09-14' });
  assert.deepEqual([flagged.start, flagged.warnings], [Date.UTC(2013, 8, 14), []]);
  for (const name of ['12345678.tif', 'tile_20131341.tif', '120130914.tif', '2013-0914.tif']) {
    await assert.rejects(describe(name), { code: 'TW_INGEST_NO_DATETIME' }, name);
  }
  const plain = await writeRaster(join(folder, 'x_20240101.tif'));
  await assert.rejects(describeScenes(plain, {}), { code: 'TW_INGEST_NO_COLLECTION' });
});

test('the TIFF tag DateTime counts after a date in the name, and with a warning', {
  skip: !hasGdal && 'no GDAL',
}, async (t) => {
  const folder = await tempFolder(t);
  const plain = await writeRaster(join(folder, 'plain.tif'));
  const describe = async (name: string) => {
    const path = join(folder, name);
    execFileSync('gdal_translate', ['-q', '-mo', 'TIFFTAG_DATETIME=2025:03:03 12:00:00', plain, path]);
    const [scene] = await describeScenes(path, { collection: 'c' });
    return [scene.id, new Date(scene.start).toISOString(), scene.warnings.join()];
  };
  const [id, named, warning] = await describe('ortho_20240601.tif');
  assert.deepEqual([id, named], ['ortho_20240601_20240601T000000Z', '2024-06-01T00:00:00.000Z']);
  assert.match(warning, /its time is the date in its name/);
  const [, tagged, tagWarning] = await describe('ortho.tif');
  assert.equal(tagged, '2025-03-03T12:00:00.000Z');
  assert.match(tagWarning, /its time is the TIFF tag DateTime/);
  await assert.rejects(describe('ortho_20240601_20240701.tif'), { code: 'TW_INGEST_NO_DATETIME' });
});

test('--datetime accepts the forms of a search, and an interval includes its last day, month or year', () => {
  const forms: [given: string, start: string, end?: string][] = [
    ['2024-06-01T10:30:00Z', '2024-06-01T10:30:00.000Z'],
    ['2024-06-01T10:30:00.5+02:00', '2024-06-01T08:30:00.500Z'],
    ['2024-06-01T10:30', '2024-06-01T10:30:00.000Z'],
    ['2024-06-01 10:30:00', '2024-06-01T10:30:00.000Z'],
    ['2024-06-01', '2024-06-01T00:00:00.000Z'],
    ['2016-05', '2016-05-01T00:00:00.000Z', '2016-05-31T23:59:59.999Z'],
    ['2016', '2016-01-01T00:00:00.000Z', '2016-12-31T23:59:59.999Z'],
    ['2024-06-01/2024-06-30', '2024-06-01T00:00:00.000Z', '2024-06-30T23:59:59.999Z'],
    ['2024-06-01/2024-06-01', '2024-06-01T00:00:00.000Z', '2024-06-01T23:59:59.999Z'],
    ['2024-06-01T10:00:00Z/2024-06', '2024-06-01T10:00:00.000Z', '2024-06-30T23:59:59.999Z'],
  ];
  for (const [datetime, start, end = start] of forms) {
    const span = datetimeOption({ datetime });
    assert.deepEqual(span, { start: Date.parse(start), end: Date.parse(end) }, datetime);
  }
  for (const datetime of ['../2024', '2024/..', '2024-02-30', '2024-06-01T25:00:00Z', '2024/2023', 'May', ''])
    assert.throws(() => datetimeOption({ datetime }), { code: 'TW_INGEST_BAD_OPTION' }, datetime);
});

test('days in file names are recognised in every form', () => {
  const day = fc.date({ min: new Date('1900-01-01'), max: new Date('2024-12-31'), noInvalidDate: true });
  fc.assert(
    fc.property(day, fc.constantFrom('-', ''), fc.stringMatching(/^[a-z_]{0,9}$/), (date, mark, word) => {
      const text = date.toISOString().slice(0, 10);
      const short = text.replaceAll('-', mark);
      assert.deepEqual(timesInName(`${word}${short}_b1.tif`), [Date.parse(text)]);
      const second = date.toISOString().slice(0, 19);
      const clock = second.slice(11).replaceAll(':', mark);
      assert.deepEqual(timesInName(`${word}${short}T${clock}Z_${short}.tif`), [Date.parse(`${second}Z`)]);
      assert.equal(parseTimeRange(text)?.start, Date.parse(text));
    }),
    { seed: 42 },
  );
});

test('only past days are dates, and a day with two times has no time', () => {
  const cases: [name: string, times: string[]][] = [
    ['m_4007361_ne_18_060_20210828.tif', ['2021-08-28']],
    ['m_4007361_ne_18_060_20210828_20220105.tif', ['2021-08-28', '2022-01-05']],
    ['x_20240601T103000Z.tif', ['2024-06-01T10:30:00Z']],
    ['T33UVP_20230707T100621_B02_10m.jp2', ['2023-07-07T10:06:21Z']],
    ['x_20240601T1030.tif', ['2024-06-01T10:30:00Z']],
    ['2024-06-01_scene.tif', ['2024-06-01']],
    ['x_20240601T103000_20240601T114500.tif', ['2024-06-01']],
    ['x_20240601T250000.tif', ['2024-06-01']],
    ['x_20991231_20240601.tif', ['2024-06-01']],
    ['x_20240231.tif', []],
    ['x_202406011.tif', []],
  ];
  for (const [name, times] of cases) {
    const found = timesInName(name);
    assert.deepEqual(
      found,
      times.map((time) => Date.parse(time)),
      name,
    );
  }
});

test('an Item beside the file describes it; options take precedence over it, and it over tags', async (t) => {
  const folder = await tempFolder(t);
  const tags = [
    { description: 'b', scale: 7 },
    { description: 'c', scale: 7 },
  ];
  const metadata = { ACQUISITION_DATETIME: '2001-01-01', PLATFORM: 'tag' };
  const path = await writeRaster(join(folder, 'a.tif'), { ...twoBands, bandTags: tags, metadata });
  for (const name of ['a.json', 'a.tif.json', 'item.json', 'other.json']) {
    const sidecar = join(folder, name);
    await writeFile(sidecar, item(name === 'a.json' ? 'https://elsewhere/b.tif' : './a.tif'));
    const [scene] = await describeScenes(path, {});
    assert.equal(scene.id, 'flight-7', name);
    assert.deepEqual(scene.collection, { id: 'drone', title: 'drone', license: 'CC-BY-4.0' });
    assert.equal(scene.platform, 'ebee');
    assert.equal(new Date(scene.start).toISOString(), '2023-05-06T07:08:09.000Z');
    const [group] = scene.groups;
    assert.equal(group.nodata, 9);
    assert.deepEqual(
      group.bands.map((band) => [band.name, band.commonName, band.scale, band.offset]),
      [
        ['R', 'red', 0.5, 1],
        ['N', 'nir', 7, 0],
      ],
    );
    const flags = { id: 'x', collection: 'y', datetime: '2024-01-01', platform: 'z', nodata: 1, scale: 2 };
    const [flagged] = await describeScenes(path, { ...flags, bands: { blue: 1 } });
    const [first] = flagged.groups[0].bands;
    assert.deepEqual(
      [
        flagged.id,
        flagged.collection.id,
        flagged.platform,
        flagged.groups[0].nodata,
        first.name,
        first.scale,
      ],
      ['x', 'y', 'z', 1, 'blue', 2],
    );
    await writeFile(sidecar, '{}');
    await assert.rejects(
      describeScenes(path, {}),
      { code: 'TW_INGEST_NO_COLLECTION' },
      'no Item, no description',
    );
    await writeFile(sidecar, item('./b.tif'));
    if (name.startsWith('a.')) await describeScenes(path, {});
    else
      await assert.rejects(describeScenes(path, {}), { code: 'TW_INGEST_NO_COLLECTION' }, 'of another file');
    await rm(sidecar);
  }
});

test('STAC 1.1 bands, special nodata, classes', async (t) => {
  const folder = await tempFolder(t);
  const bands = [0, 1].map(() => new Float32Array(64 * 64).fill(3));
  const path = await writeRaster(join(folder, 'a.tif'), { dataType: 'float32', bands });
  const asset = {
    'eo:bands': undefined,
    'raster:bands': undefined,
    nodata: 'nan',
    'raster:scale': 3,
    bands: [
      { name: 'one', 'eo:common_name': 'green' },
      { name: 'two', 'classification:classes': [{ value: 1 }], nodata: 255 },
    ],
  };
  await writeFile(join(folder, 'a.json'), item('a.tif', { stac_version: '1.1.0' }, asset));
  const [scene] = await describeScenes(path, {});
  assert.deepEqual(
    scene.groups.map(({ name, nodata, resampling, bands }) => [
      name,
      nodata,
      resampling,
      bands[0].commonName,
    ]),
    [
      ['10m-float32', Number.NaN, 'bilinear', 'green'],
      ['10m-float32-codes', 255, 'nearest', undefined],
    ],
  );
  assert.equal(scene.groups[0].bands[0].scale, 3);
});

test('an invalid Item is named in the error, and links to Items are not followed', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'a.tif'), twoBands);
  const sidecar = join(folder, 'a.json');
  const wrong: [string, RegExp][] = [
    ['{ no json', /not JSON/],
    ['[', /not JSON/],
    [`"${'x'.repeat(1_100_000)}"`, /1000000 bytes/],
    [item('a.tif', { id: 7 }), /id is not text/],
    [item('a.tif', { properties: { datetime: 'yesterday' } }), /properties.datetime is not a time/],
    [item('a.tif', { assets: { image: 'a.tif' } }), /assets.image is not an object/],
    [item('a.tif', {}, { 'raster:bands': [{ scale: '1' }] }), /raster:bands\[0\].scale is not a number/],
    [item('a.tif', {}, { 'raster:bands': [{ nodata: 'none' }] }), /nodata is not a number/],
    [item('a.tif', { collection: '../x' }), /add --collection/],
  ];
  for (const [text, message] of wrong) {
    await writeFile(sidecar, text);
    await assert.rejects(describeScenes(path, {}), (error: Error & { code: string }) => {
      assert.equal(error.code, 'TW_INGEST_BAD_SIDECAR');
      assert.match(error.message, message);
      return error.message.includes(sidecar);
    });
  }
  const away = join(folder, 'away');
  await mkdir(away);
  const other = await writeRaster(join(away, 'a.tif'), twoBands);
  await writeFile(sidecar, item('a.tif'));
  await symlink(sidecar, join(away, 'a.json'));
  await assert.rejects(describeScenes(other, {}), { code: 'TW_INGEST_NO_DATETIME' });
});

test('bands with different nodata values form separate groups', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'a.tif'), twoBands);
  const raster = { 'raster:bands': [{ nodata: 1 }, { nodata: 2 }] };
  await writeFile(join(folder, 'a.json'), item('a.tif', {}, raster));
  const node = await testNode(t, join(folder, 'data'));
  const { failed } = await ingest(node, { href: path });
  assert.deepEqual(failed, []);
  const [{ groups }] = await tilesOf(node);
  assert.deepEqual(
    groups.map(({ name, nodata }) => [name, nodata]),
    [
      ['10m', 1],
      ['10m-nodata2', 2],
      ['mask', 0],
    ],
  );
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
