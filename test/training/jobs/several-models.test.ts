/** One job that trains several models of each cell gives the same models as separate jobs, even after a kill. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TilewrightNode } from '../../../src/node.js';
import type { ModelCard, TrainResults } from '../../../src/training/index.js';
import { kill, until } from '../../jobs/servers.js';
import { tilewright } from '../../support/command.js';
import { writeInfraredScene } from '../../support/infrared-scene.js';
import { onlyNightly } from '../../support/nightly.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { resultsOf, runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';
import { FREQUENT_CHECKPOINTS, serverOf } from './training-server.js';

const BOTH = ['ndvi', 'ndmi'];
const SCENE = { collection: 's', datetime: '2024-06-01', scale: 0.0001, precision: 5 };

/** A cell that the scene covers with 45 columns has enough patches for `ndvi`, but no room for the gap of `ndmi`. */
async function ingestScene(node: TilewrightNode, folder: string): Promise<void> {
  const href = await writeInfraredScene(join(folder, 'scene.tif'), 266, 943);
  assert.deepEqual((await ingest(node, { href, ...SCENE })).failed, []);
}

const summary = ({ models }: TrainResults) =>
  models.map(({ geocode, model, metrics, baseline }) => ({ geocode, model, metrics, baseline }));

test('a job trains several models of each cell, with the same results as separate jobs', {
  skip: onlyNightly,
  timeout: 240_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const first = await testNode(t, data, { cores: 1 });
  await ingestScene(first, folder);
  await first.close();
  const flags = ['--collection', 's', '--min-coverage', '13.5', '--epochs', '1', '--data', data];
  const { code, stdout, stderr } = await tilewright('train', ...BOTH, ...flags);
  assert.equal(code, 0, stderr);

  const node = await testNode(t, data, { cores: 1 });
  const filter = { collections: ['s'], minCoverage: 13.5 };
  const train = (inputs: object) =>
    runProcess<TrainResults>(node, 'train', { filter, epochs: 1, mode: 'partitioned', ...inputs });
  const weightsOf = async ({ models }: TrainResults) =>
    Promise.all(
      models.map(async ({ id }) => (await node.server.inject(`/models/${id}/weights.bin`)).rawPayload),
    );

  const { jobs } = (await node.server.inject('/jobs')).json();
  const { jobID } = jobs.find(({ processID }: { processID: string }) => processID === 'train');
  const together = await resultsOf<TrainResults>(node, jobID);
  const weights = await weightsOf(together);
  const alone: TrainResults[] = [];
  for (const model of BOTH) alone.push(await train({ model }));
  const ids = (results: TrainResults[]) => results.flatMap(({ models }) => models.map(({ id }) => id)).sort();
  assert.deepEqual(ids([together]), ids(alone));
  assert.deepEqual(await weightsOf(together), weights);

  assert.ok(together.models.some(({ model }) => model === 'ndmi'));
  const cellsAndModels = together.models.map(({ geocode, model }) => `${geocode} ${model}`);
  assert.deepEqual(cellsAndModels, cellsAndModels.toSorted());
  const skipped = alone.flatMap((results) => results.skipped);
  assert.ok(skipped.length > 0 && skipped.every(({ model }) => model === 'ndmi'));
  assert.deepEqual(together.skipped, skipped);
  assert.ok(alone.every(({ pooled }) => pooled));
  assert.equal(together.pooled, null);

  const { id, geocode, metrics } = together.models.find(({ model }) => model === 'ndmi')!;
  const { card } = (await node.server.inject(`/models/${id}`)).json() as { card: ModelCard };
  assert.deepEqual(card.metrics, metrics);
  const [low, high] = card.displayRange!;
  assert.ok(-1 <= low && low < high && high <= 1, `${low} to ${high}`);
  assert.deepEqual(metrics.tile!.dates, ['2024-06-01T00:00:00.000Z']);
  assert.ok(metrics.tile!.psnr! > 0 && metrics.tile!.msSsim!.scales === 5, JSON.stringify(metrics.tile));
  const [{ pooled }] = alone.slice(1);
  assert.ok(pooled!.model.images!.psnr > 0 && pooled!.tile!.images.psnr > 0);
  for (const { model, metrics, id } of together.models.filter(({ model }) => model === 'ndvi')) {
    assert.deepEqual(Object.keys(metrics), ['train', 'validation'], `${model} makes no images`);
    assert.equal((await node.server.inject(`/models/${id}`)).json().card.displayRange, undefined);
  }
  const contained = await train({ model: BOTH, mode: 'contained', filter: { ...filter, geocode } });
  const same = summary(together).filter((model) => model.geocode === geocode);
  assert.deepEqual(summary(contained), same);

  // The model of all cells is scored on the same images with the same range.
  const all = await train({ model: 'ndmi', mode: 'distributed', filter: { ...filter, geocode } });
  const [cell] = all.models[0]!.distributed!.places;
  assert.deepEqual(cell!.displayRange, card.displayRange);
  assert.deepEqual(cell!.baseline, card.baseline);
  assert.deepEqual(cell!.metrics.tile!.dates, metrics.tile!.dates);
  assert.deepEqual(cell!.metrics.tile!.images, metrics.tile!.images);
  assert.deepEqual(all.pooled!.tile, cell!.metrics.tile);

  const refused = async (inputs: object): Promise<[number, string]> => {
    const headers = { authorization: `Bearer ${node.ownerSecret}` };
    const request = { method: 'POST', url: '/processes/train/execution', headers } as const;
    const answer = await node.server.inject({ ...request, payload: { inputs } });
    return [answer.statusCode, answer.json().code];
  };
  for (const model of [[], ['ndvi', 'ndvi'], ['ndvi', 'weather'], 'weather'])
    assert.deepEqual(await refused({ model }), [400, 'TW_API_BAD_REQUEST']);
  assert.deepEqual(await refused({ model: BOTH, mode: 'distributed' }), [422, 'TW_TRAIN_ONE_MODEL']);

  const [head, ...rows] = stdout.trim().split('\n');
  assert.match(head!, /^place +model +MSE .* seconds$/);
  assert.match(
    stderr,
    /lists the models, "tilewright predict ndmi" and "tilewright predict ndvi" apply them$/m,
  );
  for (const [i, { geocode, model }] of together.models.entries())
    assert.match(rows[i]!, new RegExp(`^${geocode} +${model} `));
  assert.match(rows.at(-2)!, /^no model for .*\(ndmi\)\)?: \d+x\d+ px with data are too few/);
});

test('after kill -9 the stored model is kept, and the other resumes from its checkpoint', {
  timeout: 240_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await testNode(t, data, { cores: 1 });
  await ingestScene(node, folder);
  const { geocode } = (await tilesOf(node)).reduce((a, b) => (b.coverage > a.coverage ? b : a));
  await node.close();

  // Long enough for a kill after the first checkpoint of the second model.
  const inputs = { model: BOTH, filter: { collections: ['s'], geocode }, epochs: 6 };
  const { serve, ask, execute, done, weightsOf } = await serverOf(t, data, FREQUENT_CHECKPOINTS);
  const cardOf = async (model: string) => (await ask(`/models/${model}_s_g${geocode}`)).card;
  const weights = () => Promise.all(BOTH.map((model) => weightsOf(`${model}_s_g${geocode}`)));

  const server = await serve();
  const { jobID: job } = await execute(inputs);
  const scratch = join(data, 'scratch', job);
  const hasFirst = async () => (await cardOf('ndvi'))?.job === job;
  await until('a model and a checkpoint', async () => {
    return (
      (await hasFirst()) && existsSync(scratch) && readdirSync(scratch).some((name) => !name.includes('.'))
    );
  });
  const { version } = await cardOf('ndvi');
  await kill(server);

  await serve();
  await done(job);
  assert.equal((await cardOf('ndvi')).version, version);
  assert.equal((await cardOf('ndmi')).job, job);
  assert.deepEqual(
    (await ask(`/jobs/${job}/results`)).models.map(({ model }: { model: string }) => model),
    ['ndmi', 'ndvi'],
  );
  const resumed = await weights();
  await done((await execute(inputs)).jobID);
  assert.deepEqual(await weights(), resumed);
});
