/** Grids by the CF conventions with an axis of time: gridMET, and others that are named. */
import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { timeStepRanges, variableNames } from '../../src/ingest/formats/cf-grid.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { readImage } from '../../src/raster/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';

const folder = fileURLToPath(new URL('../../../test/fixtures/raster/hdf5/', import.meta.url));
const gridmet = join(folder, 'gridmet.nc');

test('gridMET: a scene for each day', async () => {
  const scenes = await describeScenes(gridmet, {});
  assert.deepEqual(
    scenes.map(({ id, start, end }) => [id, new Date(start).toISOString(), new Date(end).toISOString()]),
    [
      ['precipitation_amount_20181231', '2018-12-31T00:00:00.000Z', '2018-12-31T23:59:59.999Z'],
      ['precipitation_amount_20190101', '2019-01-01T00:00:00.000Z', '2019-01-01T23:59:59.999Z'],
      ['precipitation_amount_20190102', '2019-01-02T00:00:00.000Z', '2019-01-02T23:59:59.999Z'],
    ],
  );
  for (const [i, { collection, groups, quality, warnings }] of scenes.entries()) {
    assert.deepEqual([collection.id, collection.license], ['gridmet', 'CC0-1.0']);
    assert.match(collection.providers?.[0].name ?? '', /^Climatology Lab/);
    assert.deepEqual([groups.length, groups[0].name, groups[0].resampling], [1, '4638m', 'bilinear']);
    const [{ name, index, scale, offset }] = groups[0].bands;
    assert.deepEqual([name, index, scale, offset], ['precipitation_amount', i, 0.1, 0]);
    assert.deepEqual([groups[0].nodata, quality, warnings], [32767, [], []]);
  }
});

test('another CF file needs the name of its collection', async () => {
  const path = join(folder, 'south-first.nc');
  await assert.rejects(describeScenes(path, {}), { code: 'TW_INGEST_NO_COLLECTION' });
  const scenes = await describeScenes(path, { collection: 'analysis', id: 'run' });
  assert.deepEqual(
    scenes.map(({ id, collection }) => `${collection.id}/${id}`),
    ['analysis/run_20200228', 'analysis/run_20200228T060000Z', 'analysis/run_20200229T060000Z'],
  );
});

test('files with the same variable and times are separate scenes', async (t) => {
  const other = join(await tempFolder(t), 'tile 2.nc');
  await copyFile(join(folder, 'south-first.nc'), other);
  const idsOf = async (path: string) =>
    (await describeScenes(path, { collection: 'analysis' })).map(({ id }) =>
      id.replace(/-[\da-f]{8}_/, '-DIGEST_'),
    );
  assert.equal((await idsOf(join(folder, 'south-first.nc')))[0], 'south-first_20200228');
  assert.equal((await idsOf(other))[0], 'tile-2-DIGEST_20200228');
});

test('a step with bounds ends before the next one; one without has the duration of the product', () => {
  const steps = [
    { start: 0, end: 100 },
    { start: 100, end: 200 },
    { start: 200, end: 200 },
  ];
  const ends = (span: number) => timeStepRanges({ steps, bandsPerStep: 1 }, span).map(({ end }) => end);
  assert.deepEqual(ends(0), [99, 199, 200]);
  assert.deepEqual(ends(50), [99, 199, 249]);
});

test('variables of one name in several groups are distinguished', () => {
  assert.deepEqual(variableNames(['/grid/rain', '/grid/snow']), ['rain', 'snow']);
  assert.deepEqual(variableNames(['/data/day/lst', '/data/night/lst', '/data/night/qc', '/x']), [
    'day/lst',
    'night/lst',
    'qc',
    'x',
  ]);
  assert.deepEqual(variableNames(['/lst', '/night/lst', '/night/lst/lst']), [
    'lst',
    'night/lst',
    'night/lst/lst',
  ]);
});

test('a CF file without times needs one', async () => {
  const path = join(folder, 'albers.nc');
  await assert.rejects(describeScenes(path, { collection: 'cover' }), { code: 'TW_INGEST_NO_DATETIME' });
  await assert.rejects(describeScenes(path, { collection: 'cover', datetime: 'July' }), {
    code: 'TW_INGEST_BAD_OPTION',
  });
  const [scene] = await describeScenes(path, { collection: 'cover', datetime: '2020-07-01' });
  assert.deepEqual([scene.id, scene.groups[0].name], ['albers_20200701', '1010m']);
});

test('variables without georeferencing are left out, with one warning', async () => {
  const [scene] = await describeScenes(join(folder, 'hostile.h5'), {
    collection: 'odd',
    datetime: '2020-01-01',
  });
  assert.deepEqual(
    scene.groups[0].bands.map(({ name }) => name),
    ['good'],
  );
  assert.match(scene.warnings.join('\n'), /\/lzf is left out: .*LZF/);
});

test('each day has its own tiles with the right pixels', async (t) => {
  const node = await testNode(t, await tempFolder(t));
  const { failed, scenes } = await ingest(node, { href: gridmet, precision: 4 });
  assert.deepEqual(failed, []);
  assert.equal(scenes.length, 3);
  const tiles = await tilesOf(node);
  assert.equal(tiles.length, 3 * new Set(tiles.map(({ geocode }) => geocode)).size);
  let compared = 0;
  for (const tile of tiles) {
    const day = (tile.start - Date.parse('2018-12-31')) / 86_400_000;
    const { header, bands } = await readImage(node.storage.tileImage(tile, '4638m'));
    const { originX, originY, xx, yy } = header.transform;
    for (const [i, value] of bands[0].entries()) {
      const longitude = originX + xx * ((i % header.width) + 0.5);
      const latitude = originY + yy * (Math.floor(i / header.width) + 0.5);
      // The fixture's numbers are a plane, which bilinear resampling keeps: one number a cell, from the cells' centres.
      const column = (longitude + 124.76666663) * 24;
      const row = (49.4 - latitude) * 24;
      const inside = column > 0 && column < 49 && row > 0 && row < 39 && (column > 6 || row > 4);
      if (!inside) continue;
      const expected = day * 101 + row * 31 + column * 7;
      assert.ok(Math.abs(value - expected) <= 0.51, `${tile.id}: ${value}, not ${expected}`);
      compared++;
    }
  }
  assert.ok(compared > 2000, `${compared} pixels were compared`);
});

test('longitudes up to 360 lie west of Greenwich', async (t) => {
  const node = await testNode(t, await tempFolder(t));
  const href = join(folder, 'south-first.nc');
  const { failed } = await ingest(node, { href, collection: 'analysis', precision: 3 });
  assert.deepEqual(failed, []);
  const tiles = (await tilesOf(node)).filter(({ scene }) => scene === 'south-first_20200228');
  assert.ok(tiles.length >= 30);
  for (const tile of tiles) {
    const group = tile.groups[0].name;
    const { header, bands } = await readImage(node.storage.tileImage(tile, group));
    const { originX, originY, xx, yy } = header.transform;
    for (const [i, value] of bands[0].entries()) {
      const column = (originX + xx * ((i % header.width) + 0.5) + 10) * 4;
      const row = (originY + yy * (Math.floor(i / header.width) + 0.5) + 10) * 4;
      if (!(column > 0 && column < 29 && row > 0 && row < 21)) continue;
      assert.ok(
        Math.abs(value - (row * 31 + column * 7) / 4) < 0.05,
        `${tile.id}: ${value} at ${column}, ${row}`,
      );
    }
  }
});
