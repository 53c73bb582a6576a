/** Display range and scores of images against NumPy and scikit-image (test/fixtures/training/reference_display_metrics.py). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { evaluateBaselines, evaluatePredictions } from '../../../src/training/evaluation.js';
import {
  DISPLAY_PEAK,
  displayRange,
  type ImagePair,
  type ImageScores,
  imageScores,
  meanScores,
  rendered,
  similarity,
} from '../../../src/training/image-metrics.js';
import type { Patches } from '../../../src/training/patches.js';
import { randomStream } from '../../../src/utils/random.js';

interface Reference {
  width: number;
  height: number;
  bands: number;
  noise: number;
  range: [number, number];
  psnr: number;
  ssim: number;
  roundedPsnr: number;
}

const references: Reference[] = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/training/display-metrics.json', import.meta.url), 'utf8'),
);

/** The formula of reference_display_metrics.py: values by pixel and band. */
function image({ width, height, bands, noise }: Pick<Reference, 'width' | 'height' | 'bands' | 'noise'>) {
  const truth = new Float32Array(width * height * bands);
  const predicted = new Float32Array(truth.length);
  for (let i = 0; i < truth.length; i++) {
    const [pixel, band] = [Math.floor(i / bands), i % bands];
    const [row, column] = [Math.floor(pixel / width), pixel % width];
    const land = 0.12 + 0.06 * Math.sin(column / 7) + 0.05 * Math.cos(row / 5 + column / 11);
    const wave = land / (1 + 0.3 * band);
    const raw = 43758.5453 * Math.sin(12.9898 * (i + 1));
    truth[i] = wave;
    predicted[i] = wave + noise * (band + 1) * (raw - Math.floor(raw) - 0.5);
  }
  const planes = (values: Float32Array) =>
    Array.from({ length: bands }, (_, b) => values.filter((_, i) => i % bands === b));
  const pair: ImagePair = { width, height, truth: planes(truth), predicted: planes(predicted) };
  return { truth, predicted, pair };
}

function patchesOf(size: number, bands: number, targets: Float32Array, counts?: Float32Array): Patches {
  const count = targets.length / (size * size * bands);
  const all = new Float32Array(count * size * size).fill(1);
  return {
    ...{ count, size, inputBands: bands, targetBands: bands },
    ...{ inputs: targets, targets, targetMask: counts ?? all },
  };
}

const near = (actual: number | undefined, expected: number, tolerance = 1e-6) =>
  assert.ok(Math.abs(actual! - expected) <= tolerance * Math.abs(expected), `${actual} is not ${expected}`);

describe('imageScores', () => {
  for (const reference of references) {
    const { width, height, bands, noise } = reference;
    it(`of ${width} x ${height} pixels, ${bands} bands and noise of ${noise} are those of scikit-image`, () => {
      const { truth, pair } = image(reference);
      // The percentiles ignore how pixels are divided into patches.
      const patches = { ...patchesOf(1, bands, truth), size: 1 };
      const range = displayRange(patches)!;
      for (const end of [0, 1] as const) near(range[end], reference.range[end]);
      const scores = imageScores(pair, range);
      near(scores.psnr, reference.psnr);
      near(scores.ssim, reference.ssim, 1e-5);
      assert.deepEqual(scores.images, { psnr: 1, ssim: 1, msSsim: 1 });
      assert.ok(Math.abs(scores.psnr! - reference.roundedPsnr) < 0.05, 'grey levels would matter');
    });
  }

  it('averages SSIM and multi-scale SSIM over bands', () => {
    const { pair } = image({ width: 60, height: 50, bands: 3, noise: 0.1 });
    const whole = similarity(pair, 0.3)!;
    const each = [0, 1, 2].map(
      (b) => similarity({ ...pair, truth: [pair.truth[b]!], predicted: [pair.predicted[b]!] }, 0.3)!,
    );
    near(whole.ssim, each.reduce((sum, { ssim }) => sum + ssim, 0) / 3, 1e-12);
    near(whole.msSsim.value, each.reduce((sum, { msSsim }) => sum + msSsim.value, 0) / 3, 1e-12);
    assert.equal(whole.msSsim.scales, 3);
  });

  it('is the same in any unit, because the range follows the values', () => {
    const { truth, pair } = image(references[0]!);
    const scores = (factor: number, shift: number) => {
      const moved = (values: Float32Array) => values.map((value) => value * factor + shift);
      const range = displayRange(patchesOf(1, 3, moved(truth)))!;
      return imageScores(
        { ...pair, truth: pair.truth.map(moved), predicted: pair.predicted.map(moved) },
        range,
      );
    };
    const [own, other] = [scores(1, 0), scores(8, -2)];
    near(other.psnr, own.psnr!, 1e-4);
    near(other.ssim, own.ssim!, 1e-4);
  });

  it('uses the clipped rendering, and excludes infinite PSNR from means', () => {
    const values = Float32Array.of(-1, 0.1, 0.2, 0.3, 5, Number.NaN);
    assert.deepEqual([...rendered(values, [0.1, 0.3])].map(Math.round), [
      0,
      0,
      128,
      DISPLAY_PEAK,
      DISPLAY_PEAK,
      Number.NaN,
    ]);
    const flat = (value: number): ImagePair => {
      const plane = new Float32Array(400).fill(value);
      return { width: 20, height: 20, truth: [plane.map(() => 0.2)], predicted: [plane] };
    };
    const scores = [0.2, Number.NaN, 0.25].map((value) => imageScores(flat(value), [0.1, 0.3]));
    assert.deepEqual(
      scores.map(({ images }) => images),
      [
        { psnr: 0, ssim: 1, msSsim: 1 },
        { psnr: 0, ssim: 0, msSsim: 0 },
        { psnr: 1, ssim: 1, msSsim: 1 },
      ],
    );
    near(meanScores(scores).psnr, 20 * Math.log10(0.2 / 0.05), 1e-5);
    assert.deepEqual(meanScores([]), { images: { psnr: 0, ssim: 0, msSsim: 0 } });
  });
});

describe('meanScores', () => {
  const count = fc.integer({ min: 0, max: 5 });
  const value = fc.double({ min: 0.1, max: 1, noNaN: true });
  const one: fc.Arbitrary<ImageScores> = fc
    .record({ psnr: value, ssim: value, ms: value, scales: fc.integer({ min: 1, max: 5 }), n: count })
    .map(({ psnr, ssim, ms, scales, n }) => ({
      ...(n > 0 && { psnr, ssim, msSsim: { value: ms, scales } }),
      images: { psnr: n, ssim: n, msSsim: n },
    }));

  it('averages means to the mean over all images', () => {
    fc.assert(
      fc.property(fc.array(one, { maxLength: 8 }), fc.nat(8), (scores, cut) => {
        const whole = meanScores(scores);
        const parts = meanScores([meanScores(scores.slice(0, cut)), meanScores(scores.slice(cut))]);
        assert.deepEqual(parts.images, whole.images);
        for (const name of ['psnr', 'ssim'] as const) {
          assert.equal(parts[name] === undefined, whole[name] === undefined);
          if (whole[name] !== undefined) near(parts[name], whole[name], 1e-12);
        }
        assert.equal(parts.msSsim?.scales, whole.msSsim?.scales);
        if (whole.msSsim) near(parts.msSsim!.value, whole.msSsim.value, 1e-12);
      }),
      { seed: 5 },
    );
  });

  it('excludes images with fewer scales', () => {
    const scored = (value: number, scales: number, n: number): ImageScores => ({
      msSsim: { value, scales },
      images: { psnr: 0, ssim: 0, msSsim: n },
    });
    const mean = meanScores([scored(0.9, 3, 1), scored(0.1, 2, 7), scored(0.6, 3, 2)]);
    near(mean.msSsim!.value, 0.7);
    assert.deepEqual([mean.msSsim!.scales, mean.images.msSsim], [3, 3]);
  });
});

describe('scores of patches', () => {
  it('have one PSNR for all bands of a patch', () => {
    const errors = [0.01, 0.02, 0.04];
    const truth = new Float32Array(64 * 64 * 3).fill(0.2);
    const predicted = truth.map((value, i) => value + errors[i % 3]!);
    const { psnr, mse } = evaluatePredictions(patchesOf(64, 3, truth), predicted, [0, 1]);
    near(psnr, 10 * Math.log10(1 / mse), 1e-5);
    near(psnr, 31.55, 1e-3);
  });

  it('have no image metrics without a range: one value per patch, or constant values', () => {
    const flat = patchesOf(16, 1, new Float32Array(256).fill(0.5));
    assert.equal(displayRange(flat), undefined);
    const { targetMask: _, ...means } = { ...flat, targets: Float32Array.of(0.1, 0.9) };
    assert.equal(displayRange(means), undefined);
    assert.deepEqual(Object.keys(evaluatePredictions(flat, flat.targets, undefined)), ['mse', 'r2']);
  });

  it('ignore pixels that do not count, in the range as well', () => {
    const random = randomStream(3).next;
    const values = Float32Array.from({ length: 32 * 32 }, random);
    const counts = Float32Array.from(values, () => (random() < 0.02 ? 0 : 1));
    const junk = (value: number) => values.map((one, i) => (counts[i] === 1 ? one : value));
    const [a, b] = [junk(0), junk(1e6)].map((targets) => {
      const patches = patchesOf(32, 1, targets, counts);
      const range = displayRange(patches)!;
      const predicted = targets.map((value, i) => value + 0.1 * ((i % 5) - 2));
      return { range, scores: evaluatePredictions(patches, predicted, range) };
    });
    assert.deepEqual(a, b);
    assert.ok(a!.range[0] > 0 && a!.range[1] < 1);
  });

  it('also use the range of the training patches for baselines', () => {
    const { truth } = image({ width: 64, height: 64, bands: 3, noise: 0 });
    const train = patchesOf(64, 3, truth);
    const cloudy = truth.map((value, i) => value + 0.01 * (i % 2));
    // The planes of the prior are ignored.
    const inputs = (set: Patches) => new Float32Array(13 * set.count * 64 ** 2).map((_, i) => Math.sin(i));
    const cloudTrain = { ...train, inputBands: 13, inputs: inputs(train) };
    const validation = { ...cloudTrain, cloudy };
    const range = displayRange(train)!;
    const { unchanged, linear, mean } = evaluateBaselines(
      { kind: 'clear' },
      { train: cloudTrain, validation },
      range,
    );
    near(unchanged!.psnr, 10 * Math.log10((range[1] - range[0]) ** 2 / unchanged!.mse), 0.01);
    for (const scores of [unchanged, linear, mean]) assert.equal(scores!.images?.ssim, 1);
  });
});
