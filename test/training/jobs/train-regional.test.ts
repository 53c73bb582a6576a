/** Tests of the regional mode: adaptation of one base by each cell, resuming after kill -9, and refused bases. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { cp, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { REGIONS, SERIES_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { openNode, type TilewrightNode } from '../../../src/node.js';
import type { Window } from '../../../src/raster/index.js';
import { bestVersion, versionsOf } from '../../../src/storage/index.js';
import { groundSeenByBase } from '../../../src/training/adaptation.js';
import type { ModelCard, TrainResults } from '../../../src/training/index.js';
import type { TrainValidationPatches } from '../../../src/training/patches.js';
import { kill, until } from '../../jobs/servers.js';
import { suiteContext } from '../../support/at-end.js';
import { tilewright } from '../../support/command.js';
import { onlyNightly } from '../../support/nightly.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';
import { serverOf } from './training-server.js';

const PRECISION = 5;

/** A data folder with two cells of each of two kinds of land, on two dates. Tests open copies of it. */
let land: string;
const file = suiteContext();
before(async () => {
  const folder = await tempFolder(file);
  land = join(folder, 'data');
  const node = await openNode({ data: land, memory: 512e6, cores: 1 });
  const size = { width: 800, height: 700 };
  const regions = { a: REGIONS.fen, b: REGIONS.broadleaf };
  for (const [i, [name, region]] of Object.entries(regions).entries()) {
    const origin = { x: 380_000 + 40_000 * i, y: 5_800_000 };
    const options = { name, region, origin, size, dates: SERIES_DATES.slice(2), seed: 7 * i };
    for (const { path } of await writeSentinelLikeSeries(join(folder, name), options))
      await ingest(node, { href: path, collection: 's', precision: PRECISION, scale: 0.0001, maskBand: 5 });
  }
  await node.close();
});

async function copyOfLand(folder: string): Promise<string> {
  const data = join(folder, 'data');
  await cp(land, data, { recursive: true });
  return data;
}

const filter = { collections: ['s'], minCoverage: 75 };
const INPUTS = { model: 'ndvi', mode: 'regional', filter, epochs: 3 };

async function cardOf(node: TilewrightNode, id: string): Promise<ModelCard> {
  return (await node.server.inject(`/models/${id}/card.json`)).json();
}

test('a region gets a base model and a model of each cell that was also trained on patches of the other cells', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, await copyOfLand(folder), { cores: 1 });
  const results = await runProcess<TrainResults>(node, 'train', INPUTS);
  const { base, models, pooled } = results;
  assert.ok(base?.distributed && models.length >= 3);
  const placesOfBase = base.distributed.places;
  assert.equal(placesOfBase.length, models.length);
  assert.equal(results.basePlaces, models.length);
  const listed = (await node.server.inject('/models')).json().models;
  assert.deepEqual(
    listed.map(({ mode, places }: { mode: string; places?: number }) => [mode, places]).sort(),
    [['distributed', models.length], ...models.map(() => ['regional', undefined])],
  );
  for (const { id, geocode, parent, adaptation, metrics, baseline } of models) {
    assert.equal(parent, base.id);
    const { factor, errors, patches, others } = adaptation!;
    assert.deepEqual(adaptation!.base, { id: base.id, version: base.version });
    assert.equal(others, Math.round(patches / 2));
    assert.ok(Math.abs(factor - patches / (patches + 60)) < 0.01, `${factor}`);
    // The same patches as those of the base and of a fresh model.
    const place = placesOfBase.find((one) => one.geocode === geocode)!;
    // On some processors, the engine rounds differently in batches of another size.
    assert.ok(Math.abs(errors.base.mse / place.metrics.validation.mse - 1) < 1e-6);
    assert.deepEqual(baseline, place.baseline);
    assert.ok(errors.fresh!.mse > 0);
    assert.notEqual(metrics.validation.mse, errors.base.mse);
    const card = await cardOf(node, id);
    assert.deepEqual([card.mode, card.adaptation], ['regional', adaptation]);
    assert.equal(card.losses.length, INPUTS.epochs / 3);
  }
  assert.ok(pooled!.model.mse > 0);
  assert.deepEqual(readdirSync(join(folder, 'data', 'scratch')), []);

  await t.test('the fresh model is that of a partitioned training', async () => {
    const alone = await runProcess<TrainResults>(node, 'train', { ...INPUTS, mode: 'partitioned' });
    const baseCard = await cardOf(node, base.id);
    for (const { id, geocode, version } of alone.models) {
      // Adapted versions, those of the place alone and the base have the same selection patches, so their errors compare.
      const [latest, adapted] = versionsOf((await node.storage.models.get(id))!);
      assert.equal(latest!.version, version);
      const cards = [latest, adapted].map((one) => one!.card as ModelCard);
      assert.deepEqual(
        cards.map(({ mode }) => mode),
        ['partitioned', 'regional'],
      );
      const place = baseCard.distributed!.places.find((one) => one.geocode === geocode)!;
      for (const { selection } of cards) assert.deepEqual(selection!.spread, place.selection!.spread);
      assert.equal(latest!.score!.data, adapted!.score!.data);
      assert.deepEqual(
        [latest, adapted].map((one) => one!.score!.error),
        cards.map(({ selection }) => selection!.mse),
      );
      const better = latest!.score!.error <= adapted!.score!.error ? latest : adapted;
      assert.equal(bestVersion([latest!, adapted!]), better);
    }
    for (const { geocode, metrics } of alone.models)
      assert.deepEqual(
        models.find((one) => one.geocode === geocode)!.adaptation!.errors.fresh,
        metrics.validation,
      );
  });

  await t.test(
    'a base that exists gives the same models, without a fresh one if none is wanted',
    async () => {
      const again = await runProcess<TrainResults>(node, 'train', { ...INPUTS, base: base.id, fresh: false });
      assert.equal(again.base, undefined);
      assert.deepEqual(
        again.models.map(({ metrics, adaptation }) => [metrics, adaptation!.factor]),
        models.map(({ metrics, adaptation }) => [metrics, adaptation!.factor]),
      );
      assert.ok(again.models.every(({ adaptation }) => adaptation!.errors.fresh === undefined));
    },
  );

  const failure = async (inputs: object) => {
    const payload = { inputs: { ...INPUTS, ...inputs } };
    const { jobID } = (
      await node.server.inject({ method: 'POST', url: '/processes/train/execution', payload })
    ).json();
    let job: { status: string; error?: { code: string; message: string } } | undefined;
    await until('the job has ended', async () => {
      job = (await node.server.inject(`/jobs/${jobID}`)).json();
      return job!.status === 'failed' || job!.status === 'successful';
    });
    return `${job!.error?.code}: ${job!.error?.message}`;
  };

  await t.test('wrong bases are refused with the reason', async () => {
    assert.match(await failure({ base: 'ndvi_s_gu1' }), /TW_TRAIN_BASE.*no model has this id/);
    assert.match(
      await failure({ model: 'ndmi', base: base.id }),
      /TW_TRAIN_BASE.*it is a model ndvi, not ndmi/,
    );
  });

  await t.test('a region of a single cell has a base and an adapted version of one model', async () => {
    const { geocode, id } = models[0]!;
    const one = { ...INPUTS, epochs: 1, filter: { ...filter, geocode } };
    const { base: own, models: adapted, basePlaces } = await runProcess<TrainResults>(node, 'train', one);
    assert.equal(basePlaces, 1);
    assert.deepEqual([own!.id, adapted[0]!.id], [id, id]);
    const { factor, patches, others } = adapted[0]!.adaptation!;
    assert.deepEqual([factor, others], [patches / 2 / (patches + 60), 0]);
    assert.equal((await cardOf(node, id)).mode, 'regional');
    // That id names the base, although the latest version is the adapted model.
    const again = await runProcess<TrainResults>(node, 'train', { ...one, base: id, fresh: false });
    assert.deepEqual(again.models[0]!.adaptation!.base, { id, version: own!.version });
    assert.match(await failure({ base: models[1]!.id }), /TW_TRAIN_BASE.*the model of one place/);
  });

  await t.test(
    'the base of a region of one trained cell also maps the cells without enough data',
    async () => {
      const tiny = { name: 'tiny', region: REGIONS.fen, seed: 3, size: { width: 40, height: 40 } };
      const series = await writeSentinelLikeSeries(join(folder, 'tiny'), {
        ...{ ...tiny, origin: { x: 390_000, y: 5_780_000 }, dates: SERIES_DATES.slice(2) },
      });
      for (const { path } of series)
        await ingest(node, { href: path, collection: 's', precision: PRECISION, scale: 0.0001, maskBand: 5 });
      const { geocode } = models[0]!;
      const small = (await tilesOf(node)).find((tile) => tile.scene.startsWith('tiny'));
      const query = { geocode: { in: [geocode, small!.geocode] } };
      const inputs = { ...INPUTS, epochs: 1, fresh: false, filter: { collections: ['s'], query } };
      const one = await runProcess<TrainResults>(node, 'train', inputs);
      assert.equal(one.models.length, 1);
      assert.notEqual(one.base!.id, one.models[0]!.id);
      assert.ok(
        [geocode, small!.geocode].every((cell) => cell.startsWith(one.base!.geocode)),
        one.base!.geocode,
      );
    },
  );

  await t.test('a damaged base fails the job before any place is read', async () => {
    const record = (await node.storage.models.get(base.id))!;
    await truncate(node.storage.models.path(record, 'weights.bin'), 100);
    assert.match(await failure({ base: base.id }), /TW_TRAIN_BASE.*base.*weights\.bin.*100 bytes/s);
  });
});

test('a base is trained on as many places as fit into the memory, and all places adapt it', {
  skip: onlyNightly,
}, async (t) => {
  const folder = await tempFolder(t);
  // Half of it is for the base; a place with its patches takes 21 MB.
  const node = await testNode(t, await copyOfLand(folder), { memory: 100e6, cores: 1 });
  const run = () => runProcess<TrainResults>(node, 'train', { ...INPUTS, epochs: 1, fresh: false });
  const { base, basePlaces, models } = await run();
  assert.ok(models.length >= 3);
  assert.equal(basePlaces, 2);
  assert.deepEqual(
    models.map(({ adaptation }) => adaptation!.base.id),
    models.map(() => base!.id),
  );
  const again = await run();
  const placesOf = ({ base }: Pick<TrainResults, 'base'>) =>
    base!.distributed!.places.map(({ geocode }) => geocode);
  assert.deepEqual(placesOf(again), placesOf({ base: base! }));
});

test('a cell is skipped if the base has trained on its validation ground', () => {
  const base = { id: 'ndvi_s_gu2', version: '1' };
  const seen = (window: Window, heldOut?: Window) =>
    groundSeenByBase(
      { holdOut: { side: 'eastern', gap: 16, window } } as TrainValidationPatches,
      { base, heldOut, step: 'fine-tune', file: '', withFresh: false } as never,
    );
  const heldOut = { column: 200, row: 16, width: 64, height: 128 };
  assert.equal(seen(heldOut, heldOut), undefined);
  assert.equal(seen({ ...heldOut, row: 32, height: 96 }, heldOut), undefined);
  // The base did not train on the cell.
  assert.equal(seen(heldOut), undefined);
  for (const moved of [{ column: 16 }, { row: 0 }, { width: 80 }, { height: 160 }])
    assert.match(
      seen({ ...heldOut, ...moved }, heldOut)!,
      /eastern side, where the base model ndvi_s_gu2 was trained/,
    );
});

test('the regional mode is refused with what it does not support', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const execute = async (inputs: object) => {
    const payload = { inputs: { ...INPUTS, ...inputs } };
    const response = await node.server.inject({ method: 'POST', url: '/processes/train/execution', payload });
    return [response.statusCode, response.json().code];
  };
  assert.deepEqual(await execute({ model: ['ndvi', 'ndmi'] }), [422, 'TW_TRAIN_ONE_MODEL']);
  assert.deepEqual(await execute({ transfer: 'similar' }), [422, 'TW_TRAIN_TRANSFER']);
  assert.deepEqual(await execute({ mode: 'partitioned', base: 'x' }), [422, 'TW_TRAIN_TRANSFER']);
  assert.deepEqual(await execute({ mode: 'distributed', fresh: false }), [422, 'TW_TRAIN_TRANSFER']);
  for (const [flags, reason] of [
    [['--transfer', 'similar'], /--mode regional starts fresh/],
    [['ndmi'], /--mode regional trains one model/],
  ] as const) {
    const { code, stderr } = await tilewright('train', 'ndvi', ...flags, '--mode', 'regional');
    assert.equal(code, 2);
    assert.match(stderr, reason);
  }
});

test('after kill -9 during the base training and while its models are stored, a region gets identical weights', {
  skip: onlyNightly,
}, async (t) => {
  const folder = await tempFolder(t);
  const data = await copyOfLand(folder);
  const { serve, ask, execute, done, weightsOf } = await serverOf(t, data);
  const files = () => readdirSync(join(data, 'scratch'), { recursive: true }).map(String);
  const inputs = { ...INPUTS, fresh: false };
  const all = async (job: string) => {
    const { models, base } = await ask(`/jobs/${job}/results`);
    const ids = [base.id, ...models.map(({ id }: { id: string }) => id)];
    const weights = [];
    for (const id of ids) weights.push([id, (await weightsOf(id)).toString('hex')]);
    const adaptations = models.map(
      ({ adaptation: { base: _, ...rest } }: ModelCard & { adaptation: object }) => rest,
    );
    return { weights, adaptations };
  };
  let server = await serve();
  const whole = await execute(inputs);
  await done(whole.jobID);
  const expected = await all(whole.jobID);

  const { jobID } = await execute(inputs);
  const line = async (part: string) =>
    (await ask(`/jobs/${jobID}/logs`)).lines.some(({ text }: { text: string }) => text.includes(part));
  await until('the training of the base', () => line('patches, engine'));
  await kill(server);
  server = await serve();
  await until('a stored model', () => line('validation R2'));
  await kill(server);
  server = await serve();
  await done(jobID);
  assert.deepEqual(await all(jobID), expected);
  assert.deepEqual(files(), []);
});

test('the retry of a cancelled job keeps its base', async (t) => {
  const folder = await tempFolder(t);
  const data = await copyOfLand(folder);
  const { serve, ask, execute, done } = await serverOf(t, data);
  await serve();
  const { jobID } = await execute({ ...INPUTS, epochs: 6 });
  const bases = async (): Promise<string[]> => {
    const { models } = await ask('/models');
    const base = models.find(({ geocode }: { geocode: string }) => geocode.length < PRECISION);
    if (!base) return [];
    const { versions } = await ask(`/models/${base.id}/versions`);
    return versions.map(({ version }: { version: string }) => version);
  };
  await until('a stored base', async () => (await bases()).length > 0);
  await ask(`/jobs/${jobID}`, { method: 'DELETE' });
  await until('the job has ended', async () => (await ask(`/jobs/${jobID}`)).status === 'dismissed');

  const [version] = await bases();
  const retry = await ask(`/jobs/${jobID}/retry`, { method: 'POST' });
  await done(retry.jobID);
  const { models, base } = await ask(`/jobs/${retry.jobID}/results`);
  assert.ok(models.length > 0);
  assert.equal(base, undefined);
  for (const { adaptation } of models) assert.equal(adaptation.base.version, version);
  assert.deepEqual(await bases(), [version]);
});
