/** Image metrics against scikit-image and pytorch-msssim (test/fixtures/training/reference_image_metrics.py). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ImagePair, psnr, similarity } from '../../../src/training/image-metrics.js';

interface Reference {
  width: number;
  height: number;
  noise: number;
  scales: number;
  /** Null if the images are equal. */
  psnr: number | null;
  ssim: number;
  msSsim: number;
}

const references: Reference[] = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/training/image-metrics.json', import.meta.url), 'utf8'),
);

/** The formula of reference_image_metrics.py. */
function imagePair(width: number, height: number, noise: number): ImagePair {
  const truth = new Float32Array(width * height);
  const predicted = new Float32Array(width * height);
  for (let i = 0; i < truth.length; i++) {
    const [row, column] = [Math.floor(i / width), i % width];
    const wave = 0.5 + 0.25 * Math.sin(column / 7) + 0.25 * Math.cos(row / 5 + column / 11);
    const raw = 43758.5453 * Math.sin(12.9898 * (i + 1));
    truth[i] = wave;
    predicted[i] = wave + noise * (raw - Math.floor(raw) - 0.5);
  }
  return { width, height, truth: [truth], predicted: [predicted] };
}

const ssim = (pair: ImagePair, peak: number) => similarity(pair, peak)?.ssim ?? null;
const msSsim = (pair: ImagePair, peak: number) => similarity(pair, peak)?.msSsim ?? null;

function close(actual: number | null | undefined, expected: number): void {
  assert.ok(Math.abs(actual! - expected) <= 1e-6 * Math.abs(expected), `${actual} is not ${expected}`);
}

/** SSIM of one window by its definition: weighted means, variances and covariance of 11 x 11 pixels. */
function windowSimilarity(x: number[], y: number[], peak: number) {
  const raw = Array.from(x, (_, i) =>
    Math.exp(-(((i % 11) - 5) ** 2 + (Math.floor(i / 11) - 5) ** 2) / (2 * 1.5 ** 2)),
  );
  const all = raw.reduce((sum, weight) => sum + weight, 0);
  const mean = (values: number[]) => values.reduce((sum, value, i) => sum + (value * raw[i]!) / all, 0);
  const [meanX, meanY] = [mean(x), mean(y)];
  const spread = (a: number[], meanA: number, b: number[], meanB: number) =>
    mean(a.map((value, i) => (value - meanA) * (b[i]! - meanB)));
  const [c1, c2] = [(0.01 * peak) ** 2, (0.03 * peak) ** 2];
  const brightness = (2 * meanX * meanY + c1) / (meanX ** 2 + meanY ** 2 + c1);
  const contrast =
    (2 * spread(x, meanX, y, meanY) + c2) / (spread(x, meanX, x, meanX) + spread(y, meanY, y, meanY) + c2);
  return brightness * contrast;
}

test('SSIM and PSNR of small images follow their definitions', () => {
  for (const [width, height, holes] of [
    [11, 11, []],
    [13, 12, []],
    [12, 14, [12 * 14 - 1]],
    [14, 13, [0, 13]],
    [15, 12, [14 + 15]],
  ] as [number, number, number[]][]) {
    const peak = 0.7;
    const pair = imagePair(width, height, 0.4);
    const counts = Uint8Array.from({ length: width * height }, (_, i) => (holes.includes(i) ? 0 : 1));
    const found: number[] = [];
    for (let top = 0; top + 11 <= height; top++)
      for (let left = 0; left + 11 <= width; left++) {
        const pixels = Array.from(
          { length: 121 },
          (_, i) => (top + Math.floor(i / 11)) * width + left + (i % 11),
        );
        if (pixels.some((pixel) => holes.includes(pixel))) continue;
        const of = ([plane]: Float32Array[]) => pixels.map((pixel) => plane![pixel]!);
        found.push(windowSimilarity(of(pair.truth), of(pair.predicted), peak));
      }
    const expected = found.reduce((sum, value) => sum + value, 0) / found.length;
    const { ssim, msSsim } = similarity({ ...pair, counts }, peak)!;
    assert.ok(Math.abs(ssim - expected) < 1e-9, `${ssim} is not ${expected}`);
    assert.deepEqual(msSsim.scales, 1);
    // The exponents of all five scales add up to 1.0001.
    assert.ok(Math.abs(msSsim.value - Math.max(0, expected) ** 1.0001) < 1e-9);
    const counting = [...counts.keys()].filter((i) => counts[i] === 1);
    const squares = counting.reduce((sum, i) => sum + (pair.truth[0]![i]! - pair.predicted[0]![i]!) ** 2, 0);
    const decibels = 10 * Math.log10(peak ** 2 / (squares / counting.length));
    assert.ok(Math.abs(psnr({ ...pair, counts }, peak)! - decibels) < 1e-9);
    if (holes.length === 0) assert.deepEqual(similarity(pair, peak), similarity({ ...pair, counts }, peak));
  }
});

test('a coarser scale has the means of 2 x 2 pixels, which count if all four do', () => {
  const [width, height] = [23, 25];
  const pair = imagePair(width, height, 0.3);
  const half = ([plane]: Float32Array[]) =>
    Float32Array.from({ length: 11 * 12 }, (_, i) => {
      const at = 2 * Math.floor(i / 11) * width + 2 * (i % 11);
      return (plane![at]! + plane![at + 1]! + plane![at + width]! + plane![at + width + 1]!) / 4;
    });
  const [truth, predicted] = [[half(pair.truth)], [half(pair.predicted)]];
  // A hole in the last row of windows of the finest scale, and so in the last row of the coarser one.
  const hole = 23 * width + 3;
  const counts = new Uint8Array(width * height).fill(1);
  const halfCounts = new Uint8Array(132).fill(1);
  for (const holed of [false, true]) {
    if (holed) {
      counts[hole] = 0;
      halfCounts[11 * 11 + 1] = 0;
    }
    const { msSsim } = similarity({ ...pair, counts }, 1)!;
    assert.equal(msSsim.scales, 2);
    const coarse = similarity({ width: 11, height: 12, truth, predicted, counts: halfCounts }, 1)!.ssim;
    // At the finest scale only contrast and structure count: a brightness of about 1 is divided out by equal images.
    const exponents = [0.0448, 0.2856].map((weight) => weight / (0.0448 + 0.2856));
    const contrast = (msSsim.value / coarse ** exponents[1]!) ** (1 / exponents[0]!);
    const fine = similarity({ ...pair, counts }, 1)!.ssim;
    assert.ok(Math.abs(contrast - fine) < 0.02 && contrast >= fine, `${contrast}, ${fine}`);
  }
});

for (const reference of references) {
  const { width, height, noise } = reference;
  test(`${width} x ${height} pixels with noise of ${noise}`, () => {
    const pair = imagePair(width, height, noise);
    if (reference.psnr === null) assert.equal(psnr(pair, 1), Infinity);
    else close(psnr(pair, 1), reference.psnr);
    close(ssim(pair, 1), reference.ssim);
    const multi = msSsim(pair, 1)!;
    assert.equal(multi.scales, reference.scales);
    close(multi.value, reference.msSsim);
  });
}

test('masked pixels have no effect, whatever their values', () => {
  const size = { width: 60, height: 50 };
  const holes = fc.array(fc.record({ x: fc.nat(59), y: fc.nat(49), side: fc.integer({ min: 1, max: 12 }) }), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(holes, fc.constantFrom(NaN, Infinity, -1e30, 7), (cut, junk) => {
      const clean = imagePair(size.width, size.height, 0.1);
      const counts = new Uint8Array(size.width * size.height).fill(1);
      for (const { x, y, side } of cut)
        for (let row = y; row < Math.min(y + side, size.height); row++)
          counts.fill(0, row * size.width + x, Math.min(row * size.width + x + side, (row + 1) * size.width));
      const spoiled = clean.predicted.map((plane) =>
        plane.map((value, i) => (counts[i] === 1 ? value : junk)),
      );
      const [a, b] = [clean.predicted, spoiled].map((predicted) => ({ ...clean, predicted, counts }));
      assert.deepEqual(psnr(b!, 1), psnr(a!, 1));
      assert.deepEqual(ssim(b!, 1), ssim(a!, 1));
      assert.deepEqual(msSsim(b!, 1), msSsim(a!, 1));
    }),
    { seed: 42, numRuns: 60 },
  );
});

test('the SSIM of an image with a hole is the mean over the windows that do not touch it', () => {
  const { width, height, ...images } = imagePair(40, 30, 0.2);
  const hole = { x: 17, y: 12 };
  const counts = new Uint8Array(width * height).fill(1);
  counts[hole.y * width + hole.x] = 0;
  let sum = 0;
  let count = 0;
  for (let top = 0; top + 11 <= height; top++)
    for (let left = 0; left + 11 <= width; left++) {
      const touches = top <= hole.y && hole.y < top + 11 && left <= hole.x && hole.x < left + 11;
      if (touches) continue;
      const window = (values: Float32Array) =>
        Float32Array.from(
          { length: 121 },
          (_, i) => values[(top + Math.floor(i / 11)) * width + left + (i % 11)]!,
        );
      const [truth, predicted] = [images.truth.map(window), images.predicted.map(window)];
      sum += ssim({ width: 11, height: 11, truth, predicted }, 1)!;
      count++;
    }
  close(ssim({ width, height, ...images, counts }, 1), sum / count);
});

test('SSIM is null if no window counts, and PSNR if no pixel counts', () => {
  const small = imagePair(10, 40, 0.1);
  assert.equal(ssim(small, 1), null);
  assert.equal(msSsim(small, 1), null);
  assert.equal(psnr({ ...small, counts: new Uint8Array(400) }, 1), null);
  const striped = imagePair(40, 40, 0.1);
  const counts = Uint8Array.from({ length: 1600 }, (_, i) => (i % 10 === 0 ? 0 : 1));
  assert.equal(ssim({ ...striped, counts }, 1), null);
});

test('the number of scales is reported if it is less than five', () => {
  assert.equal(msSsim(imagePair(21, 300, 0.1), 1)!.scales, 1);
  assert.equal(msSsim(imagePair(22, 300, 0.1), 1)!.scales, 2);
  assert.equal(msSsim(imagePair(175, 300, 0.1), 1)!.scales, 4);
  assert.equal(msSsim(imagePair(176, 300, 0.1), 1)!.scales, 5);
});
