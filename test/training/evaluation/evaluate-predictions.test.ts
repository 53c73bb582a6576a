/** Scores of predictions and of baselines without training, value by value. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evaluateBaselines, evaluatePredictions, maskedPairs } from '../../../src/training/evaluation.js';
import { DISPLAY_PEAK, psnr, rendered } from '../../../src/training/image-metrics.js';
import type { Patches } from '../../../src/training/patches.js';
import { randomStream } from '../../../src/utils/random.js';

const [COUNT, SIZE, BANDS, INPUT_BANDS] = [3, 2, 3, 13];
const PIXELS = COUNT * SIZE * SIZE;

function patches(seed: number): Patches & { cloudy: Float32Array; targetMask: Float32Array } {
  const { next } = randomStream(seed);
  const values = (length: number) => Float32Array.from({ length }, () => next());
  return {
    ...{ count: COUNT, size: SIZE, inputBands: INPUT_BANDS, targetBands: BANDS },
    inputs: values(PIXELS * INPUT_BANDS),
    targets: values(PIXELS * BANDS),
    cloudy: values(PIXELS * BANDS),
    targetMask: Float32Array.from({ length: PIXELS }, (_, i) => (i % 5 === 2 ? 0 : 1)),
  };
}

/** Mean squared error over the values of pixels with a weight. */
function errorOf({ targets, targetMask }: Patches, given: (pixel: number, band: number) => number): number {
  let sum = 0;
  let count = 0;
  for (let pixel = 0; pixel < PIXELS; pixel++)
    for (let band = 0; band < BANDS; band++) {
      if (targetMask?.[pixel] === 0) continue;
      sum += (given(pixel, band) - targets[pixel * BANDS + band]!) ** 2;
      count++;
    }
  return sum / count;
}

const near = (actual: number | undefined, expected: number, tolerance = 1e-6) =>
  assert.ok(Math.abs(actual! - expected) <= tolerance, `${actual} is not ${expected}`);

test('masked pixels are excluded in all bands', () => {
  const set = patches(1);
  const { truth, predicted } = maskedPairs(set, set.cloudy);
  const kept = [...set.targets.keys()].filter((i) => set.targetMask[Math.floor(i / BANDS)] === 1);
  assert.deepEqual(
    [...truth],
    kept.map((i) => set.targets[i]),
  );
  assert.deepEqual(
    [...predicted],
    kept.map((i) => set.cloudy[i]),
  );
  const { targetMask: _, ...all } = set;
  assert.deepEqual(maskedPairs(all, set.cloudy), { truth: set.targets, predicted: set.cloudy });
});

test('image metrics of patches are means over patches with all bands', () => {
  const set = patches(2);
  const range = [0.2, 0.9] as const;
  const { mse, psnr: found, images } = evaluatePredictions(set, set.cloudy, [...range]);
  near(
    mse,
    errorOf(set, (pixel, band) => set.cloudy[pixel * BANDS + band]!),
  );
  const each = Array.from({ length: COUNT }, (_, patch) => {
    const plane = (values: Float32Array, band: number) =>
      rendered(
        Float32Array.from(
          { length: SIZE * SIZE },
          (__, i) => values[(patch * SIZE * SIZE + i) * BANDS + band]!,
        ),
        [...range],
      );
    const planes = (values: Float32Array) => [0, 1, 2].map((band) => plane(values, band));
    const counts = Uint8Array.from(set.targetMask.subarray(patch * SIZE * SIZE, (patch + 1) * SIZE * SIZE));
    const shape = { width: SIZE, height: SIZE, counts };
    return psnr({ ...shape, truth: planes(set.targets), predicted: planes(set.cloudy) }, DISPLAY_PEAK)!;
  });
  near(found, each.reduce((sum, one) => sum + one, 0) / COUNT, 1e-4);
  assert.equal(images!.psnr, COUNT);
  assert.equal(images!.ssim, 0);
});

test('cloud removal is compared with the cloudy, the nearest clear and the median values', () => {
  const [train, validation] = [patches(3), patches(4)];
  const found = evaluateBaselines({ kind: 'clear' }, { train, validation }, undefined);
  const input = (source: number) => (pixel: number, band: number) =>
    validation.inputs[pixel * INPUT_BANDS + source * BANDS + band]!;
  near(found.nearest!.mse, errorOf(validation, input(1)));
  near(found.median!.mse, errorOf(validation, input(2)));
  near(
    found.unchanged!.mse,
    errorOf(validation, (pixel, band) => validation.cloudy[pixel * BANDS + band]!),
  );
  const means = [0, 1, 2].map((band) => {
    const values = [...train.targets].filter(
      (_, i) => i % BANDS === band && train.targetMask[Math.floor(i / BANDS)] === 1,
    );
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  });
  near(
    found.mean.mse,
    errorOf(validation, (_, band) => means[band]!),
    1e-5,
  );
  const { nearest, median, unchanged } = evaluateBaselines(
    { kind: 'ndvi' } as never,
    { train, validation },
    undefined,
  );
  assert.deepEqual([nearest, median, unchanged], [undefined, undefined, undefined]);
});
