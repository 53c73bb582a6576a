/** `tilewright predict`: messages and exit codes. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { toArray } from '../../src/async/index.js';
import { Storage } from '../../src/storage/index.js';
import { tilewright } from '../support/command.js';
import { putModel } from '../support/models.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

test('predict reports errors and bad models', async (t) => {
  const folder = await tempFolder(t);
  const data = ['--data', join(folder, 'data')];
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  await tilewright('ingest', scene, '--datetime', '2024-06-01T10:00:00Z', ...SCENE_FLAGS, ...data);
  const predict = (...flags: string[]) => tilewright('predict', ...flags, ...data);
  const told = async (code: number, text: RegExp, ...flags: string[]) => {
    const done = await predict(...flags);
    assert.equal(done.code, code, done.stderr);
    assert.match(done.stderr, text);
    return done;
  };
  await told(2, /It must be ndvi, ndmi, cloud-removal/, 'ndvx');
  await told(
    2,
    /no collection absent; there is test \[TW_QUERY_NO_COLLECTION\]/,
    'ndvi',
    '--collection',
    'absent',
  );
  const wrong = await tilewright('check', 'nosuch', ...data);
  assert.match(wrong.stderr, /^error: the value 'nosuch' of <model> is invalid\. Allowed choices are ndvi,/);
  await told(1, /^nothing to do: no tile matches the filter\.$/m, 'ndvi', '--datetime', '1999');
  const cloud =
    /^nothing to do: no tile matches the filter\. Tiles with unknown cloud cover match no cloud limit\.$/m;
  await told(1, cloud, 'ndvi', '--datetime', '1999', '--max-cloud', '5');
  const none = await told(1, /^nothing to do: \d+ tiles?, their places have no model ndvi$/m, 'ndvi');
  assert.doesNotMatch(none.stdout, /have no model/);
  const hint = /^run "tilewright train ndvi" with the same filter, to train models for places without one$/m;
  assert.match(none.stderr, hint);
  const unchecked = await tilewright('check', 'ndvi', ...data);
  assert.equal(unchecked.code, 1);
  assert.match(unchecked.stderr, /^nothing to check: \d+ places without a model ndvi of their own$/m);
  assert.match(unchecked.stderr, hint);

  const storage = await Storage.open(join(folder, 'data'));
  const tiles = (await toArray(storage.catalogue.tiles.values())).sort((a, b) => b.coverage - a.coverage);
  await putModel(storage, tiles.slice(0, 1), { mse: 0.1, mean: 0.2 });
  const { id, geocode } = await putModel(storage, tiles.slice(0, 1), { mse: 0.3, mean: 0.2 });
  const poor = await putModel(storage, tiles.slice(1, 2), { mse: 0.3, mean: 0.2 });
  await storage.close();
  const warning = new RegExp(
    `^warning: 1 model .*: ${geocode} \\(MSE 3\\.00e-1, mean 2\\.00e-1\\); --version best`,
    'm',
  );
  const made = await told(0, warning, id);
  assert.match(made.stdout, /^1 tile made, 0 unchanged/m);
  assert.match((await told(0, warning, id)).stdout, /^0 tiles made, 1 unchanged/m);
  const found = await tilewright('search', '--source', 'predicted', '--format', 'json', ...data);
  const [item] = JSON.parse(found.stdout).features;
  const { links } = JSON.parse((await tilewright('info', item.id, ...data)).stdout);
  assert.deepEqual(
    links.map(({ rel, href }: { rel: string; href: string }) => [rel, href]),
    [
      ['derived_from', tiles[0]!.id],
      ['derived_from', id],
    ],
  );
  const unknown =
    /^error: no selected place has a version "nosuch" of its model ndvi.*\[TW_TRAIN_NO_VERSION\]$/m;
  await told(1, unknown, 'ndvi', '--version', 'nosuch');
  // The other place has no such version, but its tile is not the only one.
  await told(0, hint, 'ndvi', '--version', poor.version);
  const best = await predict(id, '--version', 'best');
  assert.deepEqual(
    [best.code, /^1 tile made/m.test(best.stdout), best.stderr.includes('warning')],
    [0, true, false],
  );
  const { stderr } = await predict(poor.id, '--version', 'best');
  assert.match(stderr, /^warning: 1 model .*mean 2\.00e-1\); train again/m);

  const again = await Storage.open(join(folder, 'data'));
  const region = geocode.slice(0, 3);
  const base = await putModel(again, tiles.slice(0, 1), { geocode: region, mode: 'distributed' });
  await again.close();
  const third = tiles[2]!.geocode;
  const { stdout } = await told(0, /^/, 'ndvi', '--geocode', third);
  assert.match(stdout, /^1 tile: 1 by the model of the region$/m);
  const served = `^${third} mapped by ${base.id} of the region: it has no model ndvi$`;
  assert.match(stdout, new RegExp(served, 'm'));
  const listed = (await tilewright('models', ...data)).stdout;
  assert.match(listed, new RegExp(`^${base.id} +base +${region} +20`, 'm'));
});
