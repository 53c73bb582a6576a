/** The demo with few epochs. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ENGINE_NAMES } from '../../src/engines/load.js';
import { tilewright } from '../support/command.js';
import { tempFolder } from '../support/temp.js';

test('the demo ends with models, a report, and what to try next', async (t) => {
  const out = await tempFolder(t);
  const { code, stdout, stderr } = await tilewright('demo', '--out', out, '--epochs', '2');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /Report: .*report\.html/);
  assert.match(stdout, /tilewright serve --data/);
  assert.match(stdout, /the models of the places .*\d/);

  const data = join(out, 'data');
  const listed = JSON.parse((await tilewright('models', '--data', data, '--format', 'json')).stdout).models;
  const models = listed.filter(({ mode }: { mode: string }) => mode === 'regional');
  assert.ok(
    models.length >= 8 && listed.length === models.length + 1,
    'the places, and the base of their region',
  );
  const html = await readFile(join(out, 'report.html'), 'utf8');
  for (const { geocode } of models) assert.ok(html.includes(geocode));
  assert.doesNotMatch(html, /(src|href)="(?!data:|#)/, 'nothing is loaded from elsewhere');
  assert.match(html, /data:image\/webp/);

  const model = (...flags: string[]) => tilewright('models', models[0].id, '--data', data, ...flags);
  const { card } = JSON.parse((await model('--format', 'json')).stdout);
  assert.ok((ENGINE_NAMES as readonly string[]).includes(card.engine.name), card.engine.name);
  assert.equal(card.losses.length, card.epochs);
  assert.ok(card.metrics.validation.mse > 0 && card.baseline.mean.mse > 0 && card.baseline.linear.mse > 0);

  const summary = (await model()).stdout;
  const { mse, r2 } = card.metrics.validation;
  assert.match(summary, new RegExp(`^place +${models[0].geocode} \\(geohash\\), collection `, 'm'));
  assert.match(
    summary,
    new RegExp(`^model +${mse.toExponential(2)} +${r2.toFixed(3).replace('-', '\\-')}$`, 'm'),
  );
  assert.match(summary, /^serves +(the|ridge) .*; MSE on what was left out: the mean of the training \d/m);
  assert.match(summary, /^start +ndvi_sample_g\w+, the model of the region, as it is$/m);
  assert.match(summary, new RegExp(`^linear regression +${card.baseline.linear.mse.toExponential(2)} `, 'm'));
  assert.match(summary, /^engine +(tfjs-node|wasm)\S* .*\n[^{]*$/m);

  const again = await tilewright('demo', '--out', out, '--epochs', '1', '--format', 'json');
  assert.equal(again.code, 0, again.stderr);
  const { ingest, train } = JSON.parse(again.stdout);
  assert.ok(
    ingest.scenes.every((scene: { unchanged: boolean }) => scene.unchanged),
    'the same scenes change nothing',
  );
  assert.equal(train.models.length, models.length);
  assert.equal((await tilewright('verify', '--data', data)).code, 0);
});
