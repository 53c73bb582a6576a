import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trainingTable } from '../../src/cli/commands/train.js';
import { heldOutSummary } from '../../src/cli/output.js';
import type { TrainResults } from '../../src/training/index.js';

const model = (collection: string, geocode: string, mse: number) =>
  ({
    ...{ collection, geocode, model: 'ndvi', seconds: 1.25 },
    metrics: { validation: { mse, r2: 1 - mse } },
    baseline: { linear: { mse: 0.15 }, mean: { mse: 0.2 } },
  }) as unknown as TrainResults['models'][number];

test('models that are worse than the mean are marked, and collections are named if there are several', () => {
  assert.deepEqual(trainingTable([], false, null), []);
  const good = trainingTable([model('a', 'u26xy', 0.1)], false, null).join('\n');
  assert.doesNotMatch(good, /\*|collection/);
  assert.match(good, /place +MSE +R2.*seconds\nu26xy +1\.00e-1 +0\.900/);
  const both = trainingTable([model('a', 'u26xy', 0.1), model('b', 'u26xy', 0.3)], true, null).join('\n');
  assert.match(both, /^collection +place +model/);
  assert.match(both, /a +u26xy +ndvi +1\.00e-1 +0/);
  assert.match(both, /b +u26xy +ndvi +3\.00e-1 \*.*\n\* worse than the mean of the training/);
});

test('places that held out no date are counted, because "all places" has their errors on training dates', () => {
  const summary = (dated: number, pooled: TrainResults['pooled'] = {} as never) =>
    heldOutSummary({
      models: ['u26xw', 'u26xx', 'u26xy'].map((geocode, i) => ({
        ...model('a', geocode, 0.1),
        datedPlaces: i < dated ? 1 : 0,
      })),
      pooled,
    });
  assert.match(summary(2).join(), /^2 of 3 places held out dates; in "all places", the others /);
  assert.deepEqual(summary(3), []);
  assert.match(summary(0).join(), /^no place held out dates: /);
  // Kinds of models have no common error.
  assert.deepEqual(summary(2, null), []);
});

test('adapted models that are clearly worse than their base are named', () => {
  const adapted = (geocode: string, mse: number, base: number) => ({
    ...model('a', geocode, mse),
    adaptation: {
      factor: 0.5,
      errors: { base: { mse: base } },
    } as TrainResults['models'][number]['adaptation'],
  });
  const fine = [adapted('u26xy', 0.1, 0.2), adapted('u26xz', 0.105, 0.1)];
  assert.doesNotMatch(trainingTable(fine, false, null).join('\n'), /warning/);
  const lines = trainingTable(
    [...fine, adapted('u26xw', 0.12, 0.1), adapted('u26xv', 0.3, 0.1)],
    false,
    null,
  );
  assert.match(
    lines.at(-1)!,
    /^warning: worse than the base .*: u26xv \(3\.00 times\), u26xw \(1\.20 times\);/,
  );
  assert.match(lines.at(-2)!, /better at 1 of 4 places; verdict: too few places$/);
  const summaryOf = (ratios: number[]) =>
    trainingTable(
      ratios.map((ratio, i) => adapted(`u26x${i}`, ratio / 10, 0.1)),
      false,
      null,
    ).find((line) => line.startsWith('adapted'));
  assert.match(
    summaryOf([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])!,
    /^adapted models: 0\.50 .* 95 % interval 0\.50 to 0\.50\), better at 6 of 6 places; verdict: better$/,
  );
  assert.match(
    summaryOf([0.9, 0.9, 0.95, 1.3, 0.7, 2])!,
    /better at 4 of 6 places; verdict: cannot be distinguished$/,
  );
});

const images = { psnr: 4, ssim: 4, msSsim: 4 };
const scores = { mse: 0.01, r2: 0.5, psnr: 31.25, ssim: 0.912, msSsim: { value: 0.75, scales: 3 }, images };
const tile = { ...scores, msSsim: { value: 0.8125, scales: 5 }, dates: ['2024-06-01T00:00:00.000Z'] };
const scored = (geocode: string, metrics: object) => {
  const one = model('a', geocode, 0.1);
  return { ...one, metrics: { ...one.metrics, ...metrics } };
};

test('models of several places have a row of their pooled scores, with the measures of images', () => {
  const unchanged = { mse: 0.3, r2: 0 };
  const models = ['u26xy', 'u26xz'].map((geocode) => {
    const one = scored(geocode, { validation: scores, tile });
    return { ...one, baseline: { ...one.baseline, unchanged } };
  });
  const pooled = {
    ...{ model: { ...scores, psnr: 30.5 }, linear: { mse: 0.15, r2: 0 }, mean: { mse: 0.2, r2: 0 } },
    ...{ unchanged, tile: { ...tile, msSsim: { value: 0.9, scales: 5 } } },
  };
  assert.deepEqual(trainingTable(models, false, pooled), [
    'place       MSE      R2     MS-SSIM           PSNR dB  SSIM   tile MS-SSIM      MSE linear  MSE mean  MSE cloudy  seconds',
    'u26xy       1.00e-2  0.500  0.750 (3 scales)  31.3     0.912  0.813 (5 scales)  1.50e-1     2.00e-1   3.00e-1     1.3',
    'u26xz       1.00e-2  0.500  0.750 (3 scales)  31.3     0.912  0.813 (5 scales)  1.50e-1     2.00e-1   3.00e-1     1.3',
    'all places  1.00e-2  0.500  0.750 (3 scales)  30.5     0.912  0.900 (5 scales)  1.50e-1     2.00e-1   3.00e-1',
  ]);
  const one = trainingTable(models.slice(0, 1), false, pooled).join();
  assert.doesNotMatch(one, /all places/);
});

test('scores of images that an older version measured are marked with their range', () => {
  const { images: _, ...older } = scores;
  const rows = trainingTable([scored('u26xy', { validation: older })], false, null);
  assert.match(rows[1]!, /0\.750 \(3 scales, range 2\.0\) +31\.3 \(range 1\.0\) +0\.912 \(range 1\.0\)/);
});
