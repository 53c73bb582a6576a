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
    for (const { href } of Object.values<{ href: string }>(assets))
      assert.ok(existsSync(href.replace(/^\/vsisubfile\/\d+_\d+,/, '')), href);
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
    ['nowhere.json', 'ndvi', /is not a place/],
    ['15,95', 'ndvi', /beyond 90 degrees of latitude/],
    ['15.02,47.843', 'nir +', /character 6/],
    ['15.02,47.843', 'swir', /there is no band "swir"; there are/],
  ] as const) {
    const { code, stderr } = await tilewright('series', place, '--expression', expression, '--data', data);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  }

  // The scene lies around 15.02 E, 47.84 N, on one date.
  const outside = /test lies in 1[45][\d.]*,47[\d.]*,15[\d.]*,4[78][\d.]*, and .* is outside/;
  const isSwapped = /longitude comes first, so perhaps 15\.02,47\.843 is meant/;
  const empty: [args: string[], message: RegExp, other?: RegExp][] = [
    [['series', '-15.0,47.8'], outside, /longitude comes first/],
    [['series', '47.843,15.02'], isSwapped],
    [
      ['series', '15.02,47.843', '--datetime', '2020'],
      /no tile has a time in 2020.*test has 2024-06-01T00:00:00/,
    ],
    [
      ['series', '15.02,47.843', '--max-cloud', '5', '--source', 'filled'],
      /in the box of test, but in no tile that matches/,
    ],
    [
      ['series', '15.02,47.843', '--collection', 'tset'],
      /collection tset does not exist; existing collections: test/,
    ],
    [
      ['series', '{"type":"Polygon","coordinates":[[[47,15],[48,15],[48,16],[47,15]]]}'],
      /perhaps 15,47,16,48 is meant/,
    ],
    [['spectrum', '15.02,47.843'], /in no tile that matches/],
    [['spectrum', '47.843,15.02'], isSwapped],
    [['search', '--bbox', '47,15,48,16'], /perhaps 15,47,16,48 is meant/],
    [['search', '--bbox', '170,47,-170,48'], /170,47,-170,48 is outside/, /longitude comes first/],
    [['search', '--intersects', '{"type":"Point","coordinates":[47.843,15.02]}'], isSwapped],
    [['search', '--datetime', '2020/2021'], /test has 2024-06-01/],
    [['search', '--collection', 'tset'], /collection tset does not exist/],
  ];
  for (const [[command = '', ...args], message, other] of empty)
    for (const format of ['text', 'json']) {
      const more = command === 'series' ? ['--expression', 'ndvi'] : [];
      const { code, stderr } = await tilewright(
        command,
        ...args,
        ...more,
        '--data',
        data,
        '--format',
        format,
      );
      assert.equal(code, command === 'search' ? 0 : 1, stderr);
      assert.match(stderr, message);
      if (other) assert.doesNotMatch(stderr, other);
    }
});
