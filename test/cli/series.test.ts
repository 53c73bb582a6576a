import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { tilewright } from '../support/command.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

test('series prints a table, CSV or JSON, of a point or of GeoJSON; search names files', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  const made = await tilewright('ingest', scene, '--data', data, '--datetime', '2024-06-01', ...SCENE_FLAGS);
  assert.equal(made.code, 0, made.stderr);

  const found = await tilewright('search', '--data', data, '--format', 'json');
  for (const { assets } of JSON.parse(found.stdout).features) {
    assert.deepEqual(Object.keys(assets), ['10m', '10m-qa', 'mask'], 'a picture has no file');
    for (const { href } of Object.values<{ href: string }>(assets)) assert.ok(existsSync(href), href);
  }

  const csv = await tilewright(
    'series',
    '15.02,47.843',
    '--expression',
    'ndvi',
    '--data',
    data,
    '--format',
    'csv',
  );
  assert.equal(csv.code, 0, csv.stderr);
  const [head, row] = csv.stdout.trim().split('\n');
  assert.equal(head, 'datetime,collection,value,valid,pixels');
  const [datetime, collection, value, valid, pixels] = row.split(',');
  assert.deepEqual([datetime, collection, valid, pixels], ['2024-06-01T00:00:00.000Z', 'test', '1', '1']);
  assert.ok(Number(value) > 0.3 && Number(value) < 0.9, value);

  const field = join(folder, 'field.geojson');
  const ring = [
    [15.01, 47.84],
    [15.02, 47.84],
    [15.02, 47.845],
    [15.01, 47.84],
  ];
  await writeFile(
    field,
    JSON.stringify({ type: 'Feature', geometry: { type: 'Polygon', coordinates: [ring] } }),
  );
  const json = await tilewright('series', field, '--expression', 'nir', '--data', data, '--format', 'json');
  const { series } = JSON.parse(json.stdout);
  assert.ok(series[0].valid > 1000 && series[0].valid === series[0].pixels);
  assert.ok(series[0].mean > 0.2 && series[0].std > 0);

  for (const [place, expression, message] of [
    ['-15.0,47.8', 'ndvi', undefined],
    ['nowhere.json', 'ndvi', /is not a place/],
    ['15,95', 'ndvi', /beyond 90 degrees of latitude/],
    ['15.02,47.843', 'nir +', /character 6/],
    ['15.02,47.843', 'swir', /there is no band "swir"; there are/],
  ] as const) {
    const { code, stderr } = await tilewright('series', place, '--expression', expression, '--data', data);
    assert.equal(code, message ? 2 : 0, stderr);
    if (message) assert.match(stderr, message);
  }
});
