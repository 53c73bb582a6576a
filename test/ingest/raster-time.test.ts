/** The acquisition time of rasters of no known product: from options, tags or file names. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { datetimeOption, parseTimeRange, timesInName } from '../../src/ingest/formats/acquisition-time.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { hasGdal } from '../support/gdal.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

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
