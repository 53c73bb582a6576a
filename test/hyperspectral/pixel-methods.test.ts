/** Methods for pixels, compared with Spectral Python. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { BandProducts } from '../../src/hyperspectral/band-products.js';
import { pcaOrMnf } from '../../src/hyperspectral/components.js';
import { whitening } from '../../src/hyperspectral/linear-algebra.js';
import { type PixelMethod, pixelFunction } from '../../src/hyperspectral/methods/methods.js';
import { bandStatistics, ExactSums } from '../../src/hyperspectral/sums.js';
import { random } from '../raster/images.js';

interface Reference {
  width: number;
  stored: number[][];
  targets: number[][];
  mean: number[];
  covariance: number[][];
  sam: number[][];
  sid: number[][];
  mf: number[][];
  ace: number[][];
  rx: number[];
  pca: number[];
  noise: number[][];
  mnf: number[];
}

const reference: Reference = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/hyperspectral/detectors.json', import.meta.url), 'utf8'),
);
const bands = reference.stored.map((band) => Int16Array.from(band));
const pixels = bands[0]!.length;
const all = Int32Array.from({ length: pixels }, (_, i) => i);
const coding = { scales: bands.map(() => 1e-4), offsets: bands.map(() => 0) };
const targets = Float64Array.from(reference.targets.flat());

/** Values of all pixels, one array for each row. */
function valuesOf(method: PixelMethod): number[][] {
  const { rows, evaluate } = pixelFunction(method, coding);
  const values = Array.from({ length: rows }, () => [] as number[]);
  for (let from = 0; from < pixels; from += 64) {
    const found = evaluate(bands, all, from);
    for (let r = 0; r < rows; r++)
      for (let i = 0; i < Math.min(64, pixels - from); i++) values[r]!.push(found[r * 64 + i]!);
  }
  return values;
}

function near(values: ArrayLike<number>, wanted: ArrayLike<number>, tolerance: number, what: string): void {
  assert.equal(values.length, wanted.length);
  const most = Math.max(...Array.from(wanted, Math.abs));
  for (let i = 0; i < wanted.length; i++)
    assert.ok(
      Math.abs(values[i]! - wanted[i]!) <= tolerance * most,
      `${what} ${i}: ${values[i]} ${wanted[i]}`,
    );
}

const sums = () => {
  const products = new BandProducts(bands.length, 'int16');
  const total = new ExactSums(bands.length);
  products.add(bands, all, (part) => total.addDeviations(part));
  total.addDeviations(products.take());
  return bandStatistics(total.moments(coding.scales, coding.offsets));
};

test('mean, covariance and eigenvalues equal those of Spectral Python', () => {
  const { mean, covariance } = sums();
  near(mean, reference.mean, 1e-12, 'mean');
  near(covariance, reference.covariance.flat(), 1e-12, 'covariance');
  const count = bands.length;
  near(pcaOrMnf({ covariance, count }).eigenvalues, reference.pca, 1e-10, 'pca');
  const noise = Float64Array.from(reference.noise.flat());
  near(pcaOrMnf({ covariance, noise, count }).eigenvalues, reference.mnf, 1e-10, 'mnf');
});

test('angles, divergences, the matched filter, coherence and distances equal those of Spectral Python', () => {
  const { mean, covariance } = sums();
  const { whitening: white, loading } = whitening({ covariance, pixels });
  assert.equal(loading, 0);
  const centre = mean;
  const size = mean.length;
  const less = targets.map((value, at) => value - mean[at % size]!);
  const whitened = Float64Array.from(less, (_, at) => {
    const [row, band] = [Math.floor(at / size), at % size];
    let sum = 0;
    for (let k = 0; k < size; k++) sum += white[band * size + k]! * less[row * size + k]!;
    return sum;
  });
  // Spectral Python squares the cosine; here the sign distinguishes a target from its opposite.
  for (const [name, method, wanted] of [
    ['sam', { kind: 'angle', targets }, reference.sam],
    ['sid', { kind: 'divergence', targets }, reference.sid],
    ['ace', { kind: 'coherence', whitening: white, centre, targets: whitened }, reference.ace],
    ['rx', { kind: 'distance', whitening: white, centre }, [reference.rx]],
  ] as [string, PixelMethod, number[][]][])
    for (const [row, values] of valuesOf(method).entries())
      near(name === 'ace' ? values.map(Math.abs) : values, wanted[row]!, 1e-5, `${name} ${row}`);
});

test('the value of a pixel does not depend on its neighbours', () => {
  const { mean, covariance } = sums();
  const { whitening: white } = whitening({ covariance, pixels });
  const next = random(3);
  const order = Int32Array.from(all).sort(() => next() - 0.5);
  for (const method of [
    { kind: 'angle', targets },
    { kind: 'divergence', targets },
    { kind: 'distance', whitening: white, centre: mean },
    { kind: 'coherence', whitening: white, centre: mean, targets },
    { kind: 'linear', weights: targets, centre: mean },
  ] as PixelMethod[]) {
    const entire = valuesOf(method);
    const { rows, evaluate } = pixelFunction(method, coding);
    for (let from = 0; from < pixels; from += 64) {
      const found = evaluate(bands, order, from);
      for (let r = 0; r < rows; r++)
        for (let i = 0; i < Math.min(64, pixels - from); i++)
          assert.equal(found[r * 64 + i], entire[r]![order[from + i]!], method.kind);
    }
  }
});

test('pixels processed together have the same values as single pixels, for all number types', () => {
  const next = random(8);
  const [count, length] = [7, 1500];
  const centre = Float64Array.from({ length: count }, next);
  const own = {
    scales: Array.from({ length: count }, () => 1e-4 * (1 + next())),
    offsets: Array.from({ length: count }, next),
  };
  const rows = Float64Array.from({ length: 3 * count }, next);
  const run = Int32Array.from({ length }, (_, i) => i);
  const reversed = run.toReversed();
  for (const type of [Int16Array, Uint16Array, Float32Array, Uint8Array, Int32Array]) {
    const numbers = Array.from({ length: count }, () =>
      new type(length).map(() => 70_000 * (type === Uint16Array ? next() : next() - 0.5)),
    );
    for (const method of [
      { kind: 'linear', weights: rows, centre },
      { kind: 'abundances', endmembers: rows, count: 3, sumsToOne: true },
    ] as PixelMethod[]) {
      const entire = pixelFunction(method, own);
      const single = pixelFunction(method, own);
      // The window of the kernel ends within the second run.
      for (let from = 0; from < length; from += 200) {
        const values = entire.evaluate(numbers, run, from).slice();
        for (let i = 0; i < 64 && from + i < length; i++) {
          const wanted = single.evaluate(numbers, reversed, length - 1 - from - i);
          for (let r = 0; r < entire.rows; r++) assert.equal(values[r * 64 + i], wanted[r * 64]);
        }
      }
    }
  }
});

test('small angles have no cancellation, for any number of bands and targets and any brightness', () => {
  const next = random(21);
  for (const count of [2, 17, 224])
    for (const rows of [1, 4, 6]) {
      const own = { scales: new Array<number>(count).fill(1), offsets: new Array<number>(count).fill(0) };
      const spectra = Float64Array.from({ length: rows * count }, () => 0.05 + next());
      const { evaluate } = pixelFunction({ kind: 'angle', targets: spectra }, own);
      const numbers = Array.from({ length: count }, () => new Float32Array(64));
      for (let pixel = 0; pixel < 64; pixel++) {
        // Every fourth pixel is parallel to a target, others differ by 1e-7 to 1e-1; some point away from it.
        const difference = pixel % 4 === 0 ? 0 : 10 ** (-7 + 6 * next());
        const brightness = 10 ** (2 - 4 * next()) * (pixel % 7 === 0 ? -1 : 1);
        for (const [band, values] of numbers.entries())
          values[pixel] = brightness * (spectra[(pixel % rows) * count + band] + difference * (next() - 0.5));
      }
      const angles = evaluate(
        numbers,
        Int32Array.from({ length: 64 }, (_, i) => i),
        0,
      );
      for (let pixel = 0; pixel < 64; pixel++)
        for (let row = 0; row < rows; row++) {
          const x = unit(numbers.map((values) => values[pixel]));
          const target = unit([...spectra.subarray(row * count, (row + 1) * count)]);
          // Kahan's formula, which is accurate for all angles.
          const far = (sign: number) => Math.hypot(...x.map((value, b) => value + sign * target[b]));
          const exact = 2 * Math.atan2(far(-1), far(1));
          const error = Math.abs(angles[row * 64 + pixel] - exact);
          const isSmall = Math.min(exact, Math.PI - exact) < 0.1;
          assert.ok(error <= (isSmall ? 1e-6 : 1e-5), `${count} bands, ${exact}: off by ${error}`);
        }
    }
});

function unit(values: number[]): number[] {
  const length = Math.hypot(...values);
  return values.map((value) => value / length);
}

test('angles are accurate to 1e-6 beyond the rounding of cosines to f32', () => {
  const two = { scales: [1, 1], offsets: [0, 0] };
  const { evaluate } = pixelFunction({ kind: 'angle', targets: Float64Array.of(1, 0) }, two);
  const wanted = Float64Array.from({ length: 640 }, (_, i) => (Math.PI * i) / 639);
  const points = [Math.cos, Math.sin].map((of) => Float32Array.from(wanted, of));
  const indexes = Int32Array.from(wanted.keys());
  for (let from = 0; from < wanted.length; from += 64)
    for (const [i, angle] of evaluate(points, indexes, from).subarray(0, 64).entries()) {
      const exact = Math.atan2(points[1]![from + i]!, points[0]![from + i]!);
      const bound = 1e-6 + Math.min(2e-6, 2e-7 / Math.abs(Math.sin(exact)));
      assert.ok(Math.abs(angle - exact) <= bound, `${exact}: ${angle}`);
    }
});

test('a spectrum of zeros has no angle', () => {
  const zeros = bands.map(() => new Int16Array(1));
  const { evaluate } = pixelFunction({ kind: 'angle', targets }, coding);
  assert.ok(Number.isNaN(evaluate(zeros, Int32Array.of(0), 0)[0]!));
});

test('the diagonal is loaded if pixels are few; a covariance with a copied band has no inverse', () => {
  const size = 3;
  const covariance = Float64Array.from([2, 0, 0, 0, 1, 0, 0, 0, 3]);
  const { whitening: white, loading } = whitening({ covariance, pixels: 29 });
  assert.equal(loading, 1e-4);
  for (let i = 0; i < size; i++)
    assert.ok(Math.abs(white[i * size + i]! - 1 / Math.sqrt(covariance[i * size + i]! + 2e-4)) < 1e-12);
  const copy = Float64Array.from([1, 1, 0, 1, 1, 0, 0, 0, 1]);
  assert.throws(() => whitening({ covariance: copy, pixels: 1000 }), {
    code: 'TW_ANALYSIS_SINGULAR',
  });
});
