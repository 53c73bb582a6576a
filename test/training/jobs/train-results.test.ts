import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Metrics, TileScore } from '../../../src/training/evaluation.js';
import { regressionMetrics, targetStatistics } from '../../../src/training/evaluation.js';
import type { ImageScores } from '../../../src/training/image-metrics.js';
import { summariseReasons, type TrainResults } from '../../../src/training/index.js';
import { mergeResults, type PartialTrainResults, TRAIN_PART } from '../../../src/training/train-results.js';
import { messageCheck } from '../../../src/utils/json-schema.js';

test('cells without a model are summarised by reason, regardless of the numbers in it', () => {
  const few = (geocode: string, patches: number) => ({
    geocode,
    model: 'ndvi',
    reason: `${patches} usable patches of 16x16 px, at least 40 are needed (coverage ${patches} %, cloud 1 %)`,
  });
  const skipped = [
    few('dj3y3', 9),
    few('dj3y4', 12),
    few('dj3y5', 3),
    { geocode: 'dj3y6', model: 'ndvi', reason: 'no dates' },
  ];
  const failed = ['a', 'b'].map((geocode) => ({
    geocode,
    model: 'ndvi',
    code: 'TW_X',
    message: `${geocode}.tif is cut off`,
  }));
  assert.deepEqual(summariseReasons({ skipped, failed }, ['ndvi']), [
    '3 places (such as dj3y3): 9 usable patches of 16x16 px, at least 40 are needed (coverage 9 %, cloud 1 %)',
    '2 places (such as a): a.tif is cut off [TW_X]',
    'dj3y6: no dates',
  ]);
  const other = { geocode: 'dj3y7', model: 'ndvi', reason: 'no bands' };
  assert.equal(summariseReasons({ skipped: [...skipped, other], failed }, ['ndvi']).at(-1), '1 other place');
  assert.equal(
    summariseReasons({ skipped: [other], failed: [] }, ['ndvi'], 'started with random weights')[0],
    'dj3y7 started with random weights: no bands',
  );

  const both = [...skipped.slice(0, 3), { ...other, model: 'ndmi' }, { ...few('dj3y3', 9), model: 'ndmi' }];
  assert.deepEqual(summariseReasons({ skipped: both, failed }, ['ndvi', 'ndmi']), [
    '3 places (such as dj3y3 (ndvi)): 9 usable patches of 16x16 px, at least 40 are needed (coverage 9 %, cloud 1 %)',
    '2 places (such as a (ndvi)): a.tif is cut off [TW_X]',
    'dj3y7 (ndmi): no bands',
    '1 other model',
  ]);
});

/** Returns the partial results of one cell: its true values and the scores of `images` images. */
function partOf(
  geocode: string,
  truth: number[],
  images: number,
  ssim: number,
  isOlder = false,
): PartialTrainResults {
  const values = Float32Array.from(truth);
  const error = (by: number): Metrics => {
    const counts = { psnr: images, ssim: images, msSsim: images };
    const scores: ImageScores = {
      ...{ psnr: 30 + by, ssim: ssim - by / 10, msSsim: { value: ssim, scales: 3 } },
      images: counts,
    };
    const { images: _, ...older } = scores;
    return {
      ...regressionMetrics({ truth: values, predicted: values.map((value) => value + by) }),
      ...(isOlder ? older : scores),
    };
  };
  const tile: TileScore = {
    ...{ ssim, msSsim: { value: ssim, scales: 5 }, images: { psnr: 0, ssim: images, msSsim: images } },
    dates: [`2024-06-0${images}T00:00:00.000Z`, '2024-07-01T00:00:00.000Z'],
  };
  const model = {
    ...{ id: `cloud-removal_s_g${geocode}`, collection: 's', grid: 'geohash', geocode },
    ...{ model: 'cloud-removal', version: 'v', epochs: 1, seconds: 1 },
    metrics: { train: error(0), validation: error(0.1), ...(!isOlder && { tile }) },
    baseline: { mean: error(0.4), linear: error(0.2), unchanged: error(0.3) },
  } as TrainResults['models'][number];
  return {
    ...{ engine: 'wasm', mode: 'partitioned', models: [model], skipped: [], failed: [], seconds: 1 },
    spreads: { [model.id]: targetStatistics(values) },
  };
}

const close = (actual: number | undefined, expected: number) =>
  assert.ok(Math.abs(actual! - expected) < 1e-6, `${actual} is not ${expected}`);

test('pooled scores have all metrics; image metrics are means over all images', () => {
  const parts = [partOf('u2', [0.1, 0.5], 3, 0.9), partOf('u3', [0.9], 1, 0.5)];
  const check = messageCheck(TRAIN_PART);
  for (const part of parts) assert.equal(check(JSON.parse(JSON.stringify(part))), undefined);
  const { pooled } = mergeResults(parts);
  for (const [name, by] of [
    ['model', 0.1],
    ['linear', 0.2],
    ['unchanged', 0.3],
    ['mean', 0.4],
  ] as const) {
    const scores = pooled![name]!;
    const truth = Float32Array.of(0.1, 0.5, 0.9);
    const expected = regressionMetrics({ truth, predicted: truth.map((value) => value + by) });
    close(scores.mse, expected.mse);
    close(scores.r2, expected.r2);
    close(scores.psnr, 30 + by);
    close(scores.ssim, 0.8 - by / 10);
    close(scores.msSsim!.value, 0.8);
    assert.equal(scores.msSsim!.scales, 3);
    assert.deepEqual(scores.images, { psnr: 4, ssim: 4, msSsim: 4 });
  }
  const { tile } = pooled!;
  close(tile!.msSsim!.value, 0.8);
  assert.deepEqual([tile!.psnr, tile!.msSsim!.scales], [undefined, 5]);
  assert.deepEqual(
    tile!.dates.map((date) => date.slice(0, 10)),
    ['2024-06-01', '2024-06-03', '2024-07-01'],
  );
});

test('image metrics in the definition of an older version are not pooled with others', () => {
  const { pooled } = mergeResults([partOf('u2', [0.1, 0.5], 3, 0.9), partOf('u3', [0.9], 1, 0.5, true)]);
  for (const name of ['model', 'linear', 'unchanged', 'mean'] as const)
    assert.deepEqual(Object.keys(pooled![name]!), ['mse', 'r2']);
  close(pooled!.tile!.ssim, 0.9);
});

test('a part with scores that are not numbers is refused', () => {
  const part = partOf('u2', [0.1, 0.5], 3, 0.9);
  const [model] = part.models;
  model!.metrics.validation.images!.ssim = 'many' as never;
  assert.match(messageCheck(TRAIN_PART)(part)!, /validation\/images\/ssim must be integer/);
});
