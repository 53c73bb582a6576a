/** A training that is cut off by kill -9 resumes from its checkpoint when the node starts again, to the same model. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { SERIES_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import type { ModelCard } from '../../../src/training/index.js';
import { kill, until } from '../../jobs/servers.js';
import { checkDuration } from '../../support/duration.js';
import { onlyNightly } from '../../support/nightly.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';
import { FREQUENT_CHECKPOINTS, serverOf } from './training-server.js';

test('after kill -9 a training resumes from its checkpoint, to the same weights', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await testNode(t, data, { cores: 1 });
  const size = { width: 800, height: 700 };
  const dates = SERIES_DATES.slice(2, 3);
  const series = await writeSentinelLikeSeries(join(folder, 'scenes'), { size, dates });
  for (const { path } of series)
    await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
  const { geocode } = (await tilesOf(node)).reduce((a, b) => (b.coverage > a.coverage ? b : a));
  const id = `ndvi_s_g${geocode}`;
  await node.close();

  const { serve, ask, execute, done, weightsOf } = await serverOf(t, data, FREQUENT_CHECKPOINTS);
  const scratch = join(data, 'scratch');
  const checkpoints = () =>
    readdirSync(scratch, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.new'))
      .map(({ parentPath, name }) => join(parentPath, name));
  let server = await serve();

  for (const mode of ['partitioned', 'distributed'])
    await t.test(mode, { skip: mode === 'distributed' && onlyNightly }, async () => {
      // Long enough for a kill after the first checkpoint, which is written after a tenth of a second.
      const inputs = { model: 'ndvi', mode, filter: { collections: ['s'], geocode }, epochs: 30 };
      const { jobID } = await execute(inputs);
      await until('a checkpoint', async () => checkpoints().length > 0);
      const { started } = await ask(`/jobs/${jobID}`);
      await kill(server);
      const lossesOf = async (file: string): Promise<object[]> =>
        JSON.parse((await readFile(file)).toString('latin1').split('\n', 1)[0]!).losses;
      const [losses = []] = (await Promise.all(checkpoints().map(lossesOf))).sort(
        (a, b) => b.length - a.length,
      );
      assert.ok(losses.length > 0 && losses.length < inputs.epochs);

      server = await serve();
      await done(jobID);
      const resumed = await weightsOf(id);
      const { card } = await ask(`/models/${id}`);
      assert.deepEqual([card.job, card.mode], [jobID, mode]);
      assert.deepEqual(card.losses.slice(0, losses.length), losses);
      const { lines } = await ask(`/jobs/${jobID}/logs`);
      const goesOn = lines.some(
        ({ text }: { text: string }) => text === `resumes from epoch ${losses.length}`,
      );
      assert.equal(goesOn, mode === 'distributed', JSON.stringify(lines));
      checkDuration(await ask(`/jobs/${jobID}`), await ask(`/jobs/${jobID}/results`), started);
      assert.deepEqual(readdirSync(scratch), [], 'what it would have gone on from is gone');

      const again = await execute(inputs);
      await done(again.jobID);
      assert.deepEqual(await weightsOf(id), resumed);
      assert.deepEqual((await ask(`/models/${id}`)).card.losses, card.losses);
    });
});

test('after kill -9 a curriculum resumes with the seeds that it had trained, to the same weights', {
  skip: onlyNightly,
}, async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await testNode(t, data, { cores: 1 });
  const dates = SERIES_DATES.slice(2, 3);
  const [clear] = await writeSentinelLikeSeries(join(folder, 'scenes'), { dates });
  const cut = { collection: 's', precision: 5, scale: 0.0001, maskBand: 5 };
  await ingest(node, { href: clear!.path, ...cut });
  const filter = { minCoverage: 99 };
  await runProcess(node, 'texture', { clusters: 2, filter });
  await node.close();

  const { serve, ask, execute, done, weightsOf } = await serverOf(t, data);
  const inputs = { model: 'ndvi', epochs: 2, transfer: 'similar', curriculum: true, filter };
  const all = async (job: string) => {
    const { models } = await ask(`/jobs/${job}/results`);
    const weights = models.map(async ({ id }: { id: string }) => [id, (await weightsOf(id)).toString('hex')]);
    return { weights: await Promise.all(weights), from: models.map(({ parent }: ModelCard) => parent) };
  };
  let server = await serve();
  const whole = await execute(inputs);
  await done(whole.jobID);
  const expected = await all(whole.jobID);
  assert.ok(expected.weights.length >= 5);

  // The first cell of both clusters and one more cell are stored at this point.
  const { jobID } = await execute(inputs);
  const isStored = ({ text }: { text: string }) => text.includes('validation R2');
  const stored = async () => (await ask(`/jobs/${jobID}/logs`)).lines.filter(isStored).length;
  await until('three models', async () => (await stored()) >= 3);
  await kill(server);
  server = await serve();
  await done(jobID);
  assert.deepEqual(await all(jobID), expected);
  const { lines } = await ask(`/jobs/${jobID}/logs`);
  assert.ok(
    lines.filter(isStored).length <= expected.weights.length + 1,
    'what was stored is not trained again',
  );
});
