/** `train --stale`: only the places that have drifted are trained again, within a budget. The commands print what was found and done. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNode } from '../../../src/node.js';
import { versionsOf } from '../../../src/storage/index.js';
import type { ModelCard, TrainResults } from '../../../src/training/index.js';
import { tilewright } from '../../support/command.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';
import { CHANGED, FIRST_CHANGED, ingestChangingLand, SAME, TRAINED_UNTIL } from './changing-land.js';

test('only the changed place is trained again, from the same base, on the dates since the change', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await openNode({ data, memory: 512e6, cores: 2 });
  try {
    await ingestChangingLand(node, folder);
    const inputs = { model: 'ndvi', mode: 'regional', epochs: 4, fresh: false };
    const until = { filter: { datetime: `../${TRAINED_UNTIL}` } };
    const { base, models } = await runProcess<TrainResults>(node, 'train', { ...inputs, ...until });
    assert.equal(models.length, 2);
    const train = (more: object) =>
      runProcess<TrainResults>(node, 'train', { ...inputs, ...more, stale: true });

    let enough = 0;
    await t.test('a budget that is too small trains nothing and says so', async () => {
      for (const budget of [0, 1e-3]) {
        const { models: none, leftOut, checked, failed, estimatedSeconds } = await train({ budget });
        assert.equal(estimatedSeconds, 0);
        enough = leftOut![0]!.budget!;
        assert.deepEqual([none, failed], [[], []]);
        assert.deepEqual(checked, { fresh: 1, drifted: 1, unknown: 0 });
        const reasons = new Map(leftOut!.map(({ geocode, reason }) => [geocode, reason]));
        assert.match(reasons.get(CHANGED)!, /s of the budget of 0(\.001)? s were left/);
        assert.equal(reasons.get(SAME), 'the model is fresh');
      }
    });

    await t.test('without a drifted place nothing is trained', async () => {
      const { models: none, leftOut } = await train({ filter: { datetime: '../2023-04-01T00:00:00Z' } });
      assert.deepEqual([none.length, leftOut!.length], [0, 2]);
    });

    await t.test('the drifted place gets a new version, and keeps the old one', async () => {
      const trained = await train({ budget: enough });
      assert.ok(trained.estimatedSeconds! > 0 && trained.estimatedSeconds! <= enough);
      assert.deepEqual(
        trained.models.map(({ geocode, parent }) => [geocode, parent]),
        [[CHANGED, base!.id]],
      );
      assert.equal(trained.base, undefined);
      assert.deepEqual(
        trained.leftOut!.map(({ geocode }) => geocode),
        [SAME],
      );
      const [{ id, adaptation }] = trained.models as [TrainResults['models'][number]];
      assert.deepEqual(adaptation!.base, { id: base!.id, version: base!.version });
      assert.equal(adaptation!.factor, 1, 'it keeps all of its fine-tuning');
      assert.ok(models.every(({ adaptation }) => adaptation!.factor < 1));
      assert.equal(versionsOf((await node.storage.models.get(id))!).length, 2);
      const card: ModelCard = (await node.server.inject(`/models/${id}/card.json`)).json();
      const since = card.data.filter(({ datetime }) => datetime >= FIRST_CHANGED);
      assert.deepEqual([since.length, card.holdOut!.from], [3, undefined]);
      assert.ok(card.data.length > 3);
      // Only ground is held out, so the log does not name a date.
      const { jobs } = (await node.server.inject('/jobs?limit=1')).json();
      const { lines } = (await node.server.inject(`/jobs/${jobs[0].jobID}/logs`)).json();
      assert.ok(!lines.some(({ text }: { text: string }) => text.includes('held out for validation')));
      // Its dates are known now.
      const again = await train({});
      assert.deepEqual([again.models.length, again.checked!.unknown], [0, 1]);
      assert.deepEqual(readdirSync(join(data, 'scratch')), []);
    });

    await t.test('options that do not fit together are refused', async () => {
      const refused = async (more: object) => {
        const payload = { inputs: { model: 'ndvi', ...more } };
        const url = '/processes/train/execution';
        const answer = await node.server.inject({ method: 'POST', url, payload });
        assert.equal(answer.statusCode, 422, answer.body);
        return answer.json().code ?? answer.body;
      };
      for (const more of [
        { budget: 5 },
        { stale: true, mode: 'distributed' },
        { stale: true, model: ['ndvi', 'ndmi'] },
        { stale: true, transfer: 'similar' },
        { stale: true, validationFrom: '2023-06-01T00:00:00Z' },
      ])
        assert.match(await refused(more), /TW_TRAIN_STALE/);
    });
  } finally {
    await node.close();
  }
});

test('the commands check after an ingest, and train the changed place in any mode', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await openNode({ data, memory: 512e6, cores: 2 });
  try {
    await ingestChangingLand(node, folder);
    const filter = { datetime: `../${TRAINED_UNTIL}` };
    await runProcess<TrainResults>(node, 'train', { model: 'ndvi', epochs: 2, filter });
  } finally {
    await node.close();
  }
  const run = async (code: number, ...args: string[]) => {
    const done = await tilewright(...args, '--data', data);
    assert.equal(done.code, code, done.stderr);
    return done;
  };
  const row = new RegExp(`^${CHANGED} +${FIRST_CHANGED.slice(0, 10)} .* 4$`, 'm');
  const counts = /^2 places: 1 fresh, 1 drifted, 0 unknown$/m;
  const ingested = await run(
    0,
    ...['ingest', join(folder, 'same'), '--collection', 's', '--precision', '5', '--scale', '0.0001'],
    ...['--mask-band', '5', '--check', 'ndvi'],
  );
  assert.match(ingested.stdout, row);
  assert.match(ingested.stdout, counts);
  const checked = await run(0, 'check', 'ndvi');
  assert.match(checked.stdout, counts);
  assert.match(checked.stderr, /--stale" trains the drifted places again/);
  assert.match((await run(2, 'train', 'ndvi', '--budget', '3')).stderr, /--budget goes with --stale/);
  assert.match(
    (await run(2, 'train', 'ndvi', '--stale', '--mode', 'distributed')).stderr,
    /--mode distributed trains one model for all places, .* use --stale with the mode regional/,
  );
  const none = await run(0, 'train', 'ndvi', '--stale', '--epochs', '2', '--budget', '0');
  assert.match(
    none.stdout,
    new RegExp(`^drifted, and not trained again within the budget: ${CHANGED} \\(--budget [\\d.]+\\)$`, 'm'),
  );
  const trained = await run(0, 'train', 'ndvi', '--stale', '--epochs', '2', '--budget', '1e6');
  assert.match(trained.stdout, /^estimated duration of the trainings: [\d.]+ s of the budget of 1000000 s$/m);
  assert.match(trained.stdout, new RegExp(`^${CHANGED} +\\d`, 'm'));
  assert.match(trained.stdout, new RegExp(`^${SAME} not trained again: the model is fresh$`, 'm'));
  assert.match(trained.stdout, /^checked: 1 fresh, 1 drifted, 0 unknown$/m);
  const keeps = new RegExp(
    `--datetime ${FIRST_CHANGED.slice(0, 10)}/\\.\\. keeps those from before the change$`,
    'm',
  );
  assert.match(trained.stderr, keeps);
  const one = await run(
    0,
    ...['train', 'ndvi', '--mode', 'regional', '--no-fresh', '--epochs', '1', '--geocode', SAME],
  );
  assert.match(one.stderr, /^warning: the base model knows only one place, so it may not fit others: /m);
  assert.match((await run(0, 'models', `ndvi_s_g${SAME}`)).stdout, / base of 1 place +20/);
});
