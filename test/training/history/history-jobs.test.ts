/** Histories through the doors: training, prediction and check on a generated place with many dates. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { REGIONS, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import type { Timed } from '../../../src/jobs/index.js';
import type { CheckResults, ModelCard, PredictResults, TrainResults } from '../../../src/training/index.js';
import { onlyNightly } from '../../support/nightly.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';

const DAY = 86_400_000;
const START = Date.UTC(2022, 2, 1, 10);
const timeOf = (i: number) => new Date(START + i * 40 * DAY).toISOString();
const DATES = 8;

test('models read the history of their place', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const files = await writeSentinelLikeSeries(join(folder, 'series'), {
    ...{ name: 'series', region: REGIONS.fields, seed: 3 },
    dates: Array.from({ length: DATES }, (_, i) => ({
      datetime: timeOf(i),
      cloudShare: i % 4 === 3 ? 0.2 : 0,
    })),
    ...{ origin: { x: 421_330, y: 5_798_810 }, size: { width: 240, height: 240 } },
  });
  const href = files.map(({ path }) => path);
  await ingest(node, { href, collection: 's', precision: 5, scale: 0.0001, maskBand: 5 });
  const tiles = await tilesOf(node);
  assert.equal(tiles.length, DATES);
  const cardOf = async (id: string): Promise<ModelCard> =>
    (await node.server.inject(`/models/${id}/card.json`)).json();

  await t.test('the card says which candidate serves, and what it read', async () => {
    const { models, questions } = await runProcess<TrainResults>(node, 'train', { model: 'ndvi', epochs: 4 });
    const { choice, holdOut, data } = await cardOf(models[0]!.id);
    assert.equal(models[0]!.serves, choice!.serves);
    assert.deepEqual(
      choice!.candidates.slice(0, 3).map(({ name }) => name),
      ['mean', 'history', 'ridge'],
    );
    const { use, dates, groups } = choice!.history!;
    const trained = data.map(({ datetime }) => datetime).filter((time) => time < holdOut!.from!);
    assert.deepEqual([use, dates, groups], ['all', trained, trained.map((time) => time.slice(0, 10))]);
    for (const { errors } of choice!.candidates) assert.equal(errors.length, groups.length);
    assert.deepEqual(
      questions!.map(({ question }) => question),
      [
        ...['otherGround', 'otherGroundKnown', 'otherDates'],
        ...['otherGroundAndDates', 'otherGroundAndDatesKnown'],
      ],
    );
    const known = questions!.find(({ question }) => question === 'otherGroundAndDatesKnown')!;
    assert.ok(Math.abs(known.errors.model / models[0]!.metrics.validation.mse - 1) < 1e-6);
    // One place and few dates say little about others.
    for (const { interval, single } of questions!) assert.ok(interval === undefined && single!.length > 0);
  });

  await t.test('a predicted tile lists the dates that its model read', async () => {
    const results = await runProcess<PredictResults>(node, 'predict', { model: 'ndvi', evenIfWorse: true });
    assert.equal(results.tiles, DATES);
    const predicted = (await tilesOf(node)).filter(({ source }) => source === 'predicted');
    for (const { scene, derivedFrom } of predicted) {
      const [own, ...history] = derivedFrom;
      assert.equal(tiles.find(({ id }) => id === own)!.scene, scene);
      assert.deepEqual(
        history.toSorted(),
        tiles
          .map(({ id }) => id)
          .filter((id) => id !== own)
          .sort(),
      );
    }
    const again = await runProcess<PredictResults>(node, 'predict', { model: 'ndvi', evenIfWorse: true });
    assert.deepEqual([again.tiles, again.unchanged], [0, DATES]);
  });

  await t.test('check measures new dates with the history of the card', async () => {
    const until = { datetime: `../${timeOf(5)}` };
    await runProcess<TrainResults>(node, 'train', { model: 'ndvi', epochs: 2, filter: until });
    const { places } = await runProcess<CheckResults>(node, 'check', { model: 'ndvi' });
    assert.equal(places[0]!.dates, DATES - 6);
    assert.ok(places[0]!.status !== 'unknown' && Number.isFinite(places[0]!.error));
  });

  await t.test('any date can be held out, and is in no history', async () => {
    const day = timeOf(2).slice(0, 10);
    const training = { model: 'ndvi', epochs: 2, holdOut: [day] };
    const { models, questions } = await runProcess<TrainResults>(node, 'train', training);
    const { choice, holdOut } = await cardOf(models[0]!.id);
    assert.deepEqual(holdOut!.days, [day]);
    assert.equal(choice!.history!.dates.length, DATES - 1);
    assert.ok(!choice!.history!.dates.some((time) => time.startsWith(day)));
    assert.equal(questions!.find(({ question }) => question === 'otherDates')!.dates, 1);
    const missing = await runProcess(node, 'train', { model: 'ndvi', holdOut: ['2020-01-01'] });
    assert.equal(missing.failed, 'TW_TRAIN_HOLD_OUT');
    const late = { model: 'ndvi', epochs: 1, validationFrom: '2100-01-01T00:00:00Z' };
    const later = await runProcess<Timed<TrainResults>>(node, 'train', late);
    assert.match(later.warnings!.join(), /no date is held out, only ground/);
    const both = await node.server.inject({
      ...{ method: 'POST', url: '/processes/train/execution' },
      headers: { authorization: `Bearer ${node.ownerSecret}` },
      payload: { inputs: { model: 'ndvi', holdOut: [day], validationFrom: timeOf(6) } },
    });
    assert.deepEqual([both.statusCode, both.json().code], [422, 'TW_TRAIN_HOLD_OUT']);
  });

  await t.test('without a history, models are those of their bands', async () => {
    for (const inputs of [{ history: 'none' }, { filter: { datetime: `../${timeOf(1)}` } }]) {
      const { models, questions } = await runProcess<TrainResults>(node, 'train', {
        ...{ model: 'ndvi', epochs: 1 },
        ...inputs,
      });
      const { choice } = await cardOf(models[0]!.id);
      assert.equal(choice?.history, undefined);
      assert.equal(questions, undefined);
    }
  });

  for (const mode of ['regional', 'distributed'] as const)
    await t.test(`the ${mode} mode reads histories too`, { skip: onlyNightly }, async () => {
      const { models, base } = await runProcess<TrainResults>(node, 'train', {
        model: 'ndvi',
        epochs: 2,
        mode,
      });
      const [model] = models;
      const { choice, distributed } = await cardOf(mode === 'regional' ? base!.id : model!.id);
      assert.ok(choice!.history!.groups.length > 3);
      assert.ok((distributed?.places ?? []).every(({ questions }) => questions!.length > 0));
      if (mode === 'distributed') return;
      const own = await cardOf(model!.id);
      assert.equal(own.choice!.serves, choice!.serves);
      assert.deepEqual(own.metrics.validation, own.adaptation!.errors.base);
    });
});

test('models that know a held-out date are refused as bases, and left out as parents', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const files = await writeSentinelLikeSeries(join(folder, 'series'), {
    ...{ name: 'series', region: REGIONS.fields, seed: 3 },
    dates: Array.from({ length: 4 }, (_, i) => ({ datetime: timeOf(i), cloudShare: 0 })),
    ...{ origin: { x: 421_330, y: 5_798_810 }, size: { width: 240, height: 240 } },
  });
  const href = files.map(({ path }) => path);
  await ingest(node, { href, collection: 's', precision: 5, scale: 0.0001, maskBand: 5 });
  const training = { model: 'ndvi', epochs: 1, mode: 'regional', fresh: false };
  const days = [0, 3].map((i) => timeOf(i).slice(0, 10));
  const first = await runProcess<TrainResults>(node, 'train', { ...training, holdOut: [days[1]!] });
  assert.ok(first.base, JSON.stringify(first));
  const { base } = first;
  const again = { ...training, base: base!.id };
  const knows = await runProcess<TrainResults>(node, 'train', { ...again, holdOut: [days[0]!] });
  assert.equal(knows.failed, 'TW_TRAIN_BASE');
  const { models } = await runProcess<TrainResults>(node, 'train', { ...again, holdOut: [days[1]!] });
  assert.equal(models.length, 1);
});

test('of two dates, the history serves where the bands of one do not predict the other, else a model of the bands', async (t) => {
  const folder = await tempFolder(t);
  const files = await writeSentinelLikeSeries(join(folder, 'series'), {
    ...{ name: 'series', region: REGIONS.fields, seed: 3 },
    dates: Array.from({ length: 3 }, (_, i) => ({ datetime: timeOf(i), cloudShare: 0 })),
    ...{ origin: { x: 421_330, y: 5_798_810 }, size: { width: 240, height: 240 } },
  });
  // Another scale leaves the target, a ratio, and changes the bands: as if a producer had stretched each date.
  for (const [name, scales] of [
    ['stretched', [0.0001, 0.0003, 0.00004]],
    ['alike', [0.0001, 0.0001, 0.0001]],
  ] as const)
    await t.test(name, async (t) => {
      const node = await testNode(t, join(folder, name));
      for (const [i, { path }] of files.entries())
        await ingest(node, { href: path, collection: 's', precision: 5, scale: scales[i], maskBand: 5 });
      const training = { model: 'ndvi', epochs: 2, holdOut: [timeOf(2).slice(0, 10)] };
      for (const mode of ['partitioned', 'regional']) {
        const { models, questions } = await runProcess<TrainResults>(node, 'train', { ...training, mode });
        const card: ModelCard = (await node.server.inject(`/models/${models[0]!.id}/card.json`)).json();
        if (name === 'alike') {
          assert.ok(!card.choice?.history, `${mode}: ${JSON.stringify(card.choice)}`);
          assert.ok(card.losses.length > 0, mode);
          continue;
        }
        assert.equal(card.choice!.serves, 'history', mode);
        assert.deepEqual(
          card.choice!.candidates.map(({ name }) => name),
          ['mean', 'history', 'ridge'],
        );
        const { errors } = questions!.find(({ question }) => question === 'otherDates')!;
        assert.ok(errors.model < 0.5 * errors.mean, `${mode}: ${JSON.stringify(errors)}`);
        const predicted = await runProcess<PredictResults>(node, 'predict', { model: 'ndvi' });
        assert.equal(predicted.tiles, 3);
      }
    });
});
