/** `tilewright score` for models: output, refusals and exit codes. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { tilewright } from '../support/command.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

test('score prints the errors of a model beside those of simple baselines', async (t) => {
  const folder = await tempFolder(t);
  const target = ['--data', join(folder, 'data')];
  const precision = ['--precision', '5'];
  for (const [seed, datetime] of [
    [1, '2024-06-01T10:00:00Z'],
    [2, '2024-07-01T10:00:00Z'],
  ] as const) {
    const scene = await writeTestScene(join(folder, `${seed}.tif`), { seed, cloud: 10 * seed });
    await tilewright('ingest', scene, '--datetime', datetime, ...SCENE_FLAGS, ...precision, ...target);
  }
  const first = ['--datetime', '../2024-06-02T00:00:00Z'];
  const trained = await tilewright(
    'train',
    'ndvi',
    '--mode',
    'partitioned',
    '--epochs',
    '1',
    '--format',
    'json',
    ...first,
    ...target,
  );
  assert.equal(trained.code, 0, trained.stderr);
  const { id } = JSON.parse(trained.stdout).models[0];
  const score = (...flags: string[]) => tilewright('score', ...flags, ...target);

  const all = await score(id);
  assert.equal(all.code, 0, all.stderr);
  assert.match(all.stdout, /^ +MSE +RMSE +bias +MAE +R2 +skill\nmodel +\S+ +\S+ +\S+ +\S+ +\S+ +-?\d\.\d+/);
  assert.match(all.stdout, /^mean +\S+ +\S+ +\S+ +\S+ +\S+\n/m);
  assert.match(all.stdout, /^question +MSE +95 % +mean +history +nearest +better than history$/m);
  assert.match(all.stdout, /^other dates +\S+ +too few: \S+/m);
  assert.match(all.stdout, /^RMSE of a place: median \S+; largest: geohash \w+ \(\S+\)/m);
  assert.match(all.stdout, /^\d+ means of 16 x 16 pixels at \d+ places? on 2 dates$/m);
  assert.match(
    all.stdout,
    /^not scored: \d+ means of 16 x 16 pixels at \d+ places? on 1 date that trained the model, or too near to/m,
  );
  const { job, measures, trained: apart } = JSON.parse((await score(id, '--format', 'json')).stdout);
  assert.ok(job && measures.model.mse > 0 && apart.values > 0);
  assert.match((await score('--help')).stdout, /Without --source and --filter, .* raw tiles/);

  for (const [flags, code, message] of [
    [
      [id, '--labels', 'x.tif'],
      2,
      /--labels, --label-collection and --sample go with the id of a classifier/,
    ],
    [[id, '--sample', 'random'], 2, /leave them out, and ndvi_\w+ is compared with measured pixels/],
    [['classifier_test_gu33'], 2, /--labels FILE or --label-collection ID .*TW_CLI_LABELS/],
    [['ndvi'], 2, /must be the id of a model/],
    [['cloud-removal_test_gu33'], 1, /was not measured.*TW_TRAIN_SCORE/],
    [['ndvi_test_gu3'], 1, /the model "ndvi_test_gu3" does not exist.*TW_STORAGE_NO_MODEL/],
    [[id, '--version', 'x'], 1, /TW_STORAGE_NO_MODEL_VERSION/],
    [[id, '--datetime', '1999'], 1, /no tile matches the filter; "tilewright search" lists tiles/],
  ] as const) {
    const refused = await score(...flags);
    assert.match(refused.stderr, message);
    assert.equal(refused.code, code, refused.stderr);
  }
});
