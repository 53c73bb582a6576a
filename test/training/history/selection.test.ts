/** The choice and the training of a model of a place with a history, on synthetic land and on bad input. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { loadEngine, type Tf } from '../../../src/engines/index.js';
import { Mask } from '../../../src/raster/index.js';
import { predictPatches } from '../../../src/training/batches.js';
import { maskedPairs } from '../../../src/training/evaluation.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import { getModelSpec } from '../../../src/training/models/builtin.js';
import { withHistory } from '../../../src/training/models/spec.js';
import { makePatches, withoutHistory } from '../../../src/training/patches.js';
import { hasHistory, placeStatistics, trainChosen } from '../../../src/training/selection.js';
import { trainModel } from '../../../src/training/training-loop.js';
import { randomStream } from '../../../src/utils/random.js';
import { type Field, field } from '../synthetic-land.js';

const DAY = 86_400_000;
const START = Date.UTC(2020, 0, 1);
const spec = getModelSpec('ndvi');
const heldOut = { from: START + 200 * DAY };
let tf: Tf;
before(async () => {
  ({ tf } = await loadEngine('wasm'));
});

/** Land with an NDVI of its own at each place, whose colours say nothing: `noise` is the change from date to date. */
function place(day: number, noise: number): Field {
  const date = field(160, 160, { seed: 100 + day, time: START + day * DAY });
  const ground = field(160, 160, { seed: 1 });
  const { next } = randomStream(day);
  const shift = noise * (next() - 0.5);
  for (let at = 0; at < date.mask.length; at++) {
    const { nir, red } = ground.bands;
    const index = (nir[at]! - red[at]!) / (nir[at]! + red[at]!) + shift;
    date.bands.nir[at] = (date.bands.red[at]! * (1 + index)) / (1 - index);
  }
  return date;
}

async function train(dates: Field[]) {
  const made = makePatches(spec, labelImages(spec, dates), heldOut, { use: 'all' });
  assert.ok('dataset' in made, 'skipped' in made ? made.skipped : '');
  const { dataset } = made;
  const options = { seed: 1, epochs: 4 };
  const result = hasHistory(dataset)
    ? await trainChosen(tf, spec, dataset, placeStatistics(spec, dataset), { ...options, dates: [] })
    : await trainModel(tf, spec, dataset, options);
  const errors = [result.metrics.validation.mse, result.metrics.train.mse, result.skill.value];
  assert.ok(errors.every(Number.isFinite), String(errors));
  assert.ok(predictPatches(tf, result.model, dataset.validation).every((value) => Math.abs(value) <= 1));
  return { ...result, dataset };
}

describe('a place whose colours say nothing and whose history says all', () => {
  it('is served by its history or a ridge regression, far better than by a network of the colours', async () => {
    const dates = [0, 40, 80, 120, 160, 200, 240].map((day) => place(day, 0.02));
    const { choice, metrics, baseline, model, dataset } = await train(dates);
    assert.ok(['history', 'ridge'].includes(choice!.serves), choice!.serves);
    assert.ok(metrics.validation.mse < 0.02 * baseline.mean.mse);
    const plain = makePatches(spec, labelImages(spec, dates), heldOut);
    assert.ok('dataset' in plain);
    const colours = await trainModel(tf, spec, plain.dataset, { seed: 1, epochs: 4 });
    assert.ok(metrics.validation.mse < 0.1 * colours.metrics.validation.mse);
    // Without its history, the model answers by its fallback.
    const blind = withoutHistory(withHistory(spec), dataset.validation);
    const { truth, predicted } = maskedPairs(blind, predictPatches(tf, model, blind));
    const error = truth.reduce((sum, value, i) => sum + (value - predicted[i]!) ** 2, 0) / truth.length;
    assert.ok(error > 0.5 * baseline.mean.mse && error < 1.5 * baseline.mean.mse);
  });
});

describe('bad input has a model, and finite scores', () => {
  const days = [0, 40, 80, 120, 160, 200];
  const cases: Record<string, () => Field[]> = {
    'one date': () => [place(0, 0.1)],
    'two dates': () => [place(0, 0.1), place(40, 0.1)],
    'two dates and a held-out one': () => [place(0, 0.1), place(40, 0.1), place(200, 0.1)],
    'dates of one week': () => [0, 1, 2, 3, 4, 5, 200].map((day) => place(day, 0.1)),
    'dates without a clear pixel in common': () =>
      days.map((day, i) => {
        const date = place(day, 0.1);
        date.mask.forEach((_, at) => {
          if (Math.floor((at % date.width) / 16) % 2 === i % 2) date.mask[at] = Mask.cloud;
        });
        return date;
      }),
    'a history that is all cloud but for one date': () =>
      days.map((day, i) => {
        const date = place(day, 0.1);
        if (i % 5 !== 0) date.mask.fill(Mask.cloud);
        return date;
      }),
    'a constant target': () =>
      days.map((day) => {
        const date = place(day, 0);
        date.bands.nir.set(date.bands.red.map((red) => 3 * red));
        return date;
      }),
    'values that are not finite': () =>
      days.map((day) => {
        const date = place(day, 0.1);
        date.bands.nir.fill(Number.NaN, 0, 5000);
        date.bands.green.fill(Number.POSITIVE_INFINITY, 9000, 9500);
        return date;
      }),
  };
  for (const [name, dates] of Object.entries(cases))
    it(name, async () => {
      const { choice, model } = await train(dates());
      for (const { error, errors } of choice?.candidates ?? [])
        assert.ok([error, ...errors].every((one) => Number.isFinite(one) && one >= 0));
      model.dispose();
    });
});
