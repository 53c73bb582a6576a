/** Stored models on other land and dates: errors by hand from the tiles of `predict`, and what trained the model is not scored. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { REGIONS, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import type { Timed } from '../../../src/jobs/index.js';
import type { TilewrightNode } from '../../../src/node.js';
import { Mask, readImage } from '../../../src/raster/index.js';
import type { TileRecord } from '../../../src/storage/index.js';
import type { ModelCard, PredictResults, ScoreResults, TrainResults } from '../../../src/training/index.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { runJob } from '../../support/run-job.js';
import { tempFolder } from '../../support/temp.js';

const DAY = 86_400_000;
const START = Date.UTC(2022, 2, 1, 10);
const timeOf = (days: number) => new Date(START + days * DAY).toISOString();
/** The first three train, the fourth is held out, the last is later and partly cloudy. */
const DAYS = [0, 40, 80, 120, 160];
const LATER = { datetime: `${timeOf(160)}/${timeOf(160)}` };
const TRAINED = { datetime: `../${timeOf(80)}` };
const OPTIONS = { precision: 5, scale: 0.0001, maskBand: 5 };
const PLACE = 'u33ce';

const isClear = (code: number) => code === Mask.clear || code === Mask.notAssessed;

/** NDVI of a raw tile, NaN where it was not measured. */
async function ndviOf(node: TilewrightNode, tile: TileRecord): Promise<number[]> {
  const [group] = tile.groups;
  const at = ['red', 'nir'].map((name) => group!.bands.findIndex((band) => band.commonName === name));
  const { bands } = await readImage(node.storage.tileImage(tile, group!.name), at);
  const { bands: masks } = await readImage(node.storage.tileImage(tile, 'mask'), [0]);
  const [red, nir] = bands;
  return Array.from(masks[0]!, (code, i) =>
    isClear(code) ? (nir![i]! - red![i]!) / (nir![i]! + red![i]!) : NaN,
  );
}

const SIDE = 16;

/** Pixels by patch, of the patches side by side that lie in a tile and have three quarters of their pixels among these. */
function patchesOf(pixels: number[], { width, height }: { width: number; height: number }): number[][] {
  const patches = new Map<string, number[]>();
  for (const at of pixels) {
    const [column, row] = [Math.floor((at % width) / SIDE), Math.floor(at / width / SIDE)];
    if ((column + 1) * SIDE > width || (row + 1) * SIDE > height) continue;
    const key = `${row} ${column}`;
    patches.set(key, [...(patches.get(key) ?? []), at]);
  }
  return [...patches.values()].filter(({ length }) => length >= 0.75 * SIDE * SIDE);
}

const meanOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const near = (actual: number, expected: number, what: string) =>
  assert.ok(Math.abs(actual / expected - 1) < 1e-5, `${what}: ${actual} ${expected}`);

test('a stored model is scored on other land and dates', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const files = await writeSentinelLikeSeries(join(folder, 'series'), {
    ...{ name: 'series', region: REGIONS.fields, seed: 3, swir16: true },
    dates: DAYS.map((day) => ({ datetime: timeOf(day), cloudShare: day === 160 ? 0.2 : 0 })),
    ...{ origin: { x: 420_000, y: 5_798_810 }, size: { width: 480, height: 200 } },
  });
  const href = files.map(({ path }) => path);
  await ingest(node, { href, collection: 's', ...OPTIONS });
  const train = async (inputs: object = {}) =>
    runProcess<Timed<TrainResults>>(node, 'train', {
      ...{ model: 'ndvi', epochs: 1 },
      filter: { collections: ['s'], geocode: PLACE, datetime: `../${timeOf(120)}` },
      ...inputs,
    });
  const { models } = await train();
  const { id } = models[0]!;
  const card: ModelCard = (await node.server.inject(`/models/${id}/card.json`)).json();
  const { window } = card.holdOut!;
  assert.equal(card.choice!.history!.dates.length, 3);
  const score = (filter: object, model = id) =>
    runProcess<Timed<ScoreResults>>(node, 'score', { model, filter });
  const errorsOf = ({ questions }: ScoreResults) =>
    Object.fromEntries(questions.map(({ question, errors }) => [question, errors]));
  const raw = (await tilesOf(node)).filter(({ geocode }) => geocode === PLACE);
  const rawOf = (day: number) => raw.find(({ start }) => start === START + day * DAY)!;
  const isKept = (at: number, width: number) => {
    const [x, y] = [at % width, Math.floor(at / width)];
    return (
      x >= window.column &&
      x < window.column + window.width &&
      y >= window.row &&
      y < window.row + window.height
    );
  };

  await t.test('errors are those of the tiles that predict makes, as means of measured patches', async () => {
    const filter = { geocode: PLACE, ...LATER };
    const before = await tilesOf(node);
    const results = await score(filter);
    assert.deepEqual(await tilesOf(node), before);
    await runProcess<PredictResults>(node, 'predict', { model: id, filter, evenIfWorse: true });
    const map = (await tilesOf(node)).find(({ source }) => source === 'predicted')!;
    const { bands } = await readImage(node.storage.tileImage(map, map.groups[0]!.name), [0]);
    const predicted = Array.from(bands[0]!, (value) => (value === -32768 ? NaN : value * 1e-4));
    const truth = await ndviOf(node, rawOf(160));
    const others = await Promise.all([120, 80, 40, 0].map((day) => ndviOf(node, rawOf(day))));
    const baselines = truth.map((_, at) => {
      const values = others.map((other) => other[at]!).filter((value) => !Number.isNaN(value));
      return values.length > 0 ? [meanOf(values), values[0]!] : [results.mean, results.mean];
    });
    const used = truth.flatMap((value, at) => (Number.isNaN(value + predicted[at]!) ? [] : [at]));
    const size = map.groups[0]!;
    const cut = (pixels: number[]) => patchesOf(pixels, size);
    assert.ok(used.length < 0.99 * others[0]!.filter((value) => !Number.isNaN(value)).length, 'clouds');
    const sides = [true, false].map((kept) => used.filter((at) => isKept(at, size.width) === kept));
    const all = sides.flatMap(cut);
    assert.equal(results.values, all.length);
    assert.equal(results.unit, 'means of 16 x 16 pixels');
    assert.deepEqual(results.trained, { values: 0, places: 0, dates: 0 });
    type ValueAt = (at: number) => number;
    const errors = (patches: number[][], of: ValueAt) =>
      patches.map((pixels) => meanOf(pixels.map(of)) - meanOf(pixels.map((at) => truth[at]!)));
    const mse = (patches: number[][], of: ValueAt) => meanOf(errors(patches, of).map((error) => error ** 2));
    const asked = errorsOf(results);
    assert.deepEqual(Object.keys(asked), ['otherDates', 'otherGroundAndDates', 'otherGroundAndDatesKnown']);
    for (const [question, kept] of [
      ['otherDates', false],
      ['otherGroundAndDatesKnown', true],
    ] as const) {
      const patches = cut(used.filter((at) => isKept(at, size.width) === kept));
      assert.ok(patches.length > 10);
      near(
        asked[question]!.model,
        mse(patches, (at) => predicted[at]!),
        question,
      );
      near(
        asked[question]!.mean,
        mse(patches, () => results.mean),
        'mean',
      );
      near(
        asked[question]!.history,
        mse(patches, (at) => baselines[at]![0]!),
        'history',
      );
      near(
        asked[question]!.nearest,
        mse(patches, (at) => baselines[at]![1]!),
        'nearest',
      );
    }
    const { model, mean } = results.measures!;
    const ofModel = errors(all, (at) => predicted[at]!);
    const error = meanOf(ofModel.map((one) => one ** 2));
    near(model.mse, error, 'MSE');
    near(model.rmse, Math.sqrt(error), 'RMSE');
    near(model.bias, meanOf(ofModel), 'bias');
    near(model.mae, meanOf(ofModel.map(Math.abs)), 'MAE');
    const average = meanOf(all.map((pixels) => meanOf(pixels.map((at) => truth[at]!))));
    near(model.r2, 1 - error / mse(all, () => average), 'R2');
    near(results.pooled!.skill.model.value, 1 - error / mean.mse, 'skill');
    assert.equal(results.pooled!.interval, undefined);
    assert.deepEqual(
      results.pooled!.single!.map(({ name }) => name),
      [timeOf(160).slice(0, 10)],
    );
  });

  await t.test('ground that trained the model is not scored on dates that trained it', async () => {
    const results = await score({ geocode: PLACE, ...TRAINED });
    const size = rawOf(0).groups[0]!;
    const trained = (await Promise.all([0, 40, 80].map((day) => ndviOf(node, rawOf(day))))).map(
      (truth) =>
        patchesOf(
          [...truth.keys()].filter((at) => !Number.isNaN(truth[at]!) && !isKept(at, size.width)),
          size,
        ).length,
    );
    const total = trained.reduce((sum, count) => sum + count, 0);
    assert.deepEqual(results.trained, { values: total, places: 1, dates: 3 });
    assert.deepEqual(Object.keys(errorsOf(results)), ['otherGround', 'otherGroundKnown']);
    const { otherGround, otherGroundKnown } = errorsOf(results);
    assert.notEqual(otherGround!.model, otherGroundKnown!.model);
    assert.deepEqual([otherGround!.history, otherGround!.nearest], [otherGround!.mean, otherGround!.mean]);
    // A date of its data that it held out.
    const heldOut = await score({ geocode: PLACE, datetime: `${timeOf(120)}/${timeOf(120)}` });
    assert.equal(heldOut.trained.values, 0);
    assert.ok(errorsOf(heldOut)['otherDates']);
  });

  await t.test(
    'a collection of the same scenes, and a twin within three days, are those that trained it',
    async () => {
      const own = await score({ geocode: PLACE, ...TRAINED });
      await ingest(node, { href, collection: 'copy', ...OPTIONS });
      const copy = await score({ collections: ['copy'], geocode: PLACE, ...TRAINED });
      assert.deepEqual(copy.trained, own.trained);
      assert.deepEqual(copy.questions, own.questions);
      // Cells of another size cover the same ground.
      await ingest(node, { href: href[0], collection: 'fine', ...OPTIONS, precision: 6 });
      const fine = await score({ collections: ['fine'], geocode: PLACE, recurse: true });
      assert.equal(fine.values, 0);
      assert.ok(fine.trained.values > 100 && fine.trained.places > 3);
      assert.match(fine.warnings!.join(), /all of it trained the model/);
      for (const [hours, isTwin] of [
        [-71, true],
        [72, true],
        [73, false],
      ] as const) {
        const datetime = new Date(START + 40 * DAY + hours * 3_600_000).toISOString();
        const collection = `twin${hours + 100}`;
        await ingest(node, { href: href[1], collection, ...OPTIONS, datetime });
        const { trained, values, questions } = await score({ collections: [collection], geocode: PLACE });
        assert.equal(trained.values > 40, isTwin, `${hours} hours`);
        assert.equal(
          questions.some(({ question }) => question === 'otherDates'),
          !isTwin,
        );
        assert.ok(values > 10);
      }
    },
  );

  await t.test('a place without history has its training mean as history', async () => {
    await ingest(node, { href: href[4], collection: 'single', ...OPTIONS });
    const results = await score({ collections: ['single'] });
    assert.ok(results.places.length > 1);
    const { otherGroundAndDates, otherGroundAndDatesKnown, otherDates } = errorsOf(results);
    assert.equal(otherGroundAndDatesKnown, undefined);
    for (const { history, nearest, mean } of [otherGroundAndDates!, otherDates!])
      assert.deepEqual([history, nearest], [mean, mean]);
    const rmse = results.places.map((place) => place.rmse);
    assert.deepEqual(
      rmse,
      rmse.toSorted((a, b) => b - a),
    );
    assert.equal(
      results.values,
      results.places.reduce((sum, { values }) => sum + values, 0),
    );
  });

  await t.test('what trained the base of an adapted model trained the model', async () => {
    const filter = { collections: ['s'], datetime: `../${timeOf(120)}` };
    const training = { mode: 'regional', history: 'none', fresh: false, filter };
    const { models, base } = await train(training);
    const adapted = models.find(({ geocode }) => geocode === PLACE)!;
    const other = models.find(({ geocode }) => geocode !== PLACE)!.geocode;
    const elsewhere = { collections: ['s'], geocode: other, ...TRAINED };
    for (const model of [adapted.id, base!.id]) {
      const { trained, questions, warnings } = await score(elsewhere, model);
      assert.ok(trained.values > 10 && trained.dates === 3, model);
      assert.ok(questions.every(({ question }) => question.startsWith('otherGround')));
      assert.doesNotMatch((warnings ?? []).join(), /deleted/);
      const heldOut = await score({ ...elsewhere, datetime: `${timeOf(120)}/${timeOf(120)}` }, model);
      assert.equal(heldOut.trained.values, 0);
      assert.ok(errorsOf(heldOut)['otherDates'], model);
    }
    const headers = { authorization: `Bearer ${node.ownerSecret}` };
    const deleted = await node.server.inject({ method: 'DELETE', url: `/models/${base!.id}`, headers });
    assert.equal(deleted.statusCode, 204, deleted.body);
    const { warnings } = await score(elsewhere, adapted.id);
    assert.match(warnings!.join(), new RegExp(`started from ${base!.id}, version \\w+, which was deleted`));
  });

  await t.test('a map of NDMI is scored too, and predicted tiles are no truth', async () => {
    const { models } = await train({
      model: 'ndmi',
      filter: { collections: ['s'], datetime: `../${timeOf(120)}` },
    });
    const { questions, warnings, pooled } = await score(LATER, models[0]!.id);
    assert.ok(questions.length >= 2 && pooled!.places === 3);
    assert.doesNotMatch((warnings ?? []).join(), /means of/);
    const { error } = await runJob(node, 'score', { model: id, filter: { source: 'predicted' } });
    assert.equal(error!.code, 'TW_TRAIN_SCORE');
    assert.match(error!.message, /no tile can be used \(1 tile: they lack red, green, blue, nir\)/);
  });

  await t.test('a scene that was ingested with a second date is named', async () => {
    await ingest(node, { href: href[0], collection: 's', id: 'copy', ...OPTIONS, datetime: timeOf(200) });
    const filter = { collections: ['s'], geocode: PLACE, datetime: `${timeOf(200)}/${timeOf(200)}` };
    const sameImages = /same images, .*: 2022-03-01 and 2022-09-17 \(\d+ places?\); scores/;
    assert.match((await score(filter)).warnings!.join(), sameImages);
    // One of two grounds is not compared on the date that trained.
    const ofTraining = { ...filter, datetime: `${timeOf(0)}/${timeOf(0)}` };
    assert.match((await score(ofTraining)).warnings!.join(), sameImages);
    await ingest(node, {
      href: href[0],
      collection: 'copies',
      id: 'copy',
      ...OPTIONS,
      datetime: timeOf(200),
    });
    const inOther = await score({ ...filter, collections: ['copies'] });
    assert.match(inOther.warnings!.join(), sameImages);
    assert.doesNotMatch(((await score(LATER)).warnings ?? []).join(), /same images/);
    for (const mode of ['partitioned', 'regional']) {
      const { warnings } = await train({ mode, filter: { collections: ['s'], datetime: `${timeOf(0)}/..` } });
      assert.match(warnings!.join(), sameImages);
    }
  });

  await t.test(
    'composites that contain a date of the training are scored as such a date, and cannot be held out alone',
    async () => {
      const composite = async (id: string, first: number, last: number) => {
        const datetime = `${timeOf(first)}/${timeOf(last)}`;
        await ingest(node, { href: href.at(-1), collection: 's', id, ...OPTIONS, datetime });
        return Object.keys(errorsOf(await score({ datetime: `${timeOf(first)}/${timeOf(first)}` })));
      };
      assert.ok((await composite('later', 130, 150)).includes('otherDates'));
      for (const [id, first, last] of [
        ['around', 60, 100],
        ['before', 42, 78],
      ] as const)
        assert.deepEqual(
          (await composite(id, first, last)).filter((question) => question !== 'otherGround'),
          ['otherGroundKnown'],
        );
      const alone = await runJob(node, 'train', {
        ...{ model: 'ndvi', epochs: 1, holdOut: [timeOf(60).slice(0, 10)] },
        filter: { collections: ['s'], geocode: PLACE },
      });
      assert.equal(alone.error!.code, 'TW_TRAIN_HOLD_OUT');
      assert.match(alone.error!.message, /a tile holds observations from 2022-04-30 to 2022-06-09/);
    },
  );

  await t.test('places that lie in other places of a training are named', async () => {
    const ofDate = { collections: ['s'], geocode: PLACE, datetime: `${timeOf(0)}/${timeOf(0)}` };
    await runProcess(node, 'split', { precision: 6, filter: ofDate });
    const warningsOf = async (sources: string[]) => {
      const { geocode: _, ...filter } = ofDate;
      const query = { source: { in: sources } };
      const { warnings = [] } = await train({ mode: 'regional', filter: { ...filter, query } });
      return warnings.join();
    };
    assert.match(
      await warningsOf(['raw', 'split']),
      /\d+ places \(such as u33ce.\) lie in another selected place/,
    );
    assert.doesNotMatch(await warningsOf(['raw']), /lie in another/);
  });

  await t.test('what cannot be scored is refused with the reason', async () => {
    const errorOf = async (inputs: object) => (await runJob(node, 'score', { model: id, ...inputs })).error!;
    assert.equal((await errorOf({ model: 'ndvi_none_gu' })).code, 'TW_STORAGE_NO_MODEL');
    assert.equal((await errorOf({ version: 'none' })).code, 'TW_STORAGE_NO_MODEL_VERSION');
    assert.equal((await errorOf({ filter: { collections: ['none'] } })).code, 'TW_QUERY_NO_COLLECTION');
    assert.match(
      (await errorOf({ filter: { datetime: '../2001-01-01T00:00:00Z' } })).message,
      /no tile matches the filter/,
    );
    for (const [model, reason] of [
      ['classifier_s_gu33', /score-classifier/],
      ['cloud-removal_s_gu33ce', /not measured/],
    ] as const)
      await assert.rejects(runJob(node, 'score', { model }), reason);
  });
});
