/** Sums of products, compared with sums of big integers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BandProducts } from '../../src/hyperspectral/band-products.js';
import { bandStatistics, ExactSums } from '../../src/hyperspectral/sums.js';
import { allocatePixels, type DataType, type PixelArray } from '../../src/raster/index.js';
import { random } from '../raster/images.js';

/** `span`: range of the values. */
function pixelsOf(
  dataType: DataType,
  bands: number,
  count: number,
  span: number,
  seed: number,
): PixelArray[] {
  const next = random(seed);
  return Array.from({ length: bands }, () => {
    const out = allocatePixels(dataType, count);
    const base = dataType.startsWith('u') ? span : 0;
    for (let i = 0; i < count; i++) {
      const value = base + (next() - 0.5) * 2 * span;
      out[i] = dataType.startsWith('float') ? value : Math.round(value);
    }
    return out;
  });
}

/** Adds the pixels in pieces, each as the sums of another node. */
function totalOf(dataType: DataType, bands: PixelArray[], pieces: Int32Array[]): ExactSums {
  const total = new ExactSums(bands.length);
  for (const indexes of pieces) {
    const node = new ExactSums(bands.length);
    const products = new BandProducts(bands.length, dataType);
    products.add(bands, indexes, (sums) => node.addDeviations(sums));
    node.addDeviations(products.take());
    total.addSent(JSON.parse(JSON.stringify(node.sent())));
  }
  return total;
}

const cases = fc.record({
  dataType: fc.constantFrom<DataType[]>('int16', 'uint16', 'uint8', 'int32', 'float32', 'float64'),
  bands: fc.integer({ min: 1, max: 30 }),
  count: fc.integer({ min: 2, max: 300 }),
  span: fc.constantFrom(1, 100, 5000, 32_767, 1e8),
  seed: fc.nat(),
});

const sumOf = (values: ArrayLike<number>) => {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum;
};

const WHOLE = ['uint8', 'int16', 'uint16'];

const spanOf = (dataType: DataType, span: number) =>
  Math.min(span, { uint8: 127, int16: 32_767, uint16: 32_767 }[dataType as string] ?? 1e9);

test('sums of numbers of 8 and 16 bits are exact', () => {
  fc.assert(
    fc.property(cases, ({ dataType, bands: count, count: pixels, span, seed }) => {
      fc.pre(WHOLE.includes(dataType));
      const bands = pixelsOf(dataType, count, pixels, spanOf(dataType, span), seed);
      const all = Int32Array.from({ length: pixels }, (_, i) => i);
      const { products, sums } = totalOf(dataType, bands, [all]).sent();
      for (let i = 0, at = 0; i < count; i++) {
        const one = BigInt(sumOf(bands[i]!));
        assert.equal(BigInt(sums[i]!), one << 80n);
        for (let j = i; j < count; j++, at++) {
          let wanted = 0n;
          for (let p = 0; p < pixels; p++) wanted += BigInt(bands[i]![p]!) * BigInt(bands[j]![p]!);
          assert.equal(BigInt(products[at]!), wanted << 120n);
        }
      }
    }),
    { seed: 27, numRuns: 60 },
  );
});

test('for integers, sums have the same bits however pixels are grouped and ordered', () => {
  fc.assert(
    fc.property(cases, ({ dataType, bands: count, count: pixels, span, seed }) => {
      fc.pre(WHOLE.includes(dataType));
      const next = random(seed);
      const bands = pixelsOf(dataType, count, pixels, spanOf(dataType, span), seed);
      const order = Int32Array.from({ length: pixels }, (_, i) => i).sort(() => next() - 0.5);
      const cut = 1 + Math.floor(next() * (pixels - 1));
      const pieces = [order.subarray(cut), order.subarray(0, cut)];
      const entire = totalOf(dataType, bands, [Int32Array.from({ length: pixels }, (_, i) => i)]);
      assert.deepEqual(totalOf(dataType, bands, pieces).sent(), entire.sent());
    }),
    { seed: 28, numRuns: 60 },
  );
});

test('mean and covariance equal those of two passes in f64, even far from zero', () => {
  fc.assert(
    fc.property(
      cases,
      fc.constantFrom(0, 1e4),
      ({ dataType, bands: count, count: pixels, span, seed }, far) => {
        const bands = pixelsOf(dataType, count, pixels, spanOf(dataType, span), seed);
        if (dataType.startsWith('float'))
          for (const band of bands) for (let i = 0; i < pixels; i++) band[i]! += far;
        const all = Int32Array.from({ length: pixels }, (_, i) => i);
        const scales = bands.map((_, b) => 0.5 + b);
        const offsets = bands.map((_, b) => b - 3);
        const { mean, covariance } = bandStatistics(totalOf(dataType, bands, [all]).moments(scales, offsets));
        const means = bands.map((band) => sumOf(band) / pixels);
        const deviation = (b: number) => Math.sqrt(sumOf(Array.from(bands[b]!, (v) => (v - means[b]!) ** 2)));
        for (let i = 0; i < count; i++) {
          assert.ok(
            Math.abs(mean[i]! - (means[i]! * scales[i]! + offsets[i]!)) <= 1e-9 * (1 + Math.abs(mean[i]!)),
          );
          for (let j = 0; j < count; j++) {
            let sum = 0;
            for (let p = 0; p < pixels; p++) sum += (bands[i]![p]! - means[i]!) * (bands[j]![p]! - means[j]!);
            const wanted = (sum / (pixels - 1)) * scales[i]! * scales[j]!;
            const size = ((deviation(i) * deviation(j)) / (pixels - 1)) * scales[i]! * scales[j]!;
            assert.ok(Math.abs(covariance[i * count + j]! - wanted) <= 1e-9 * size + 1e-12, `${i} ${j}`);
          }
        }
      },
    ),
    { seed: 29, numRuns: 60 },
  );
});

test('one pixel has no covariance', () => {
  const sums = totalOf('int16', pixelsOf('int16', 3, 1, 10, 1), [Int32Array.of(0)]);
  assert.throws(() => bandStatistics(sums.moments([1, 1, 1], [0, 0, 0])), {
    code: 'TW_ANALYSIS_TOO_FEW_PIXELS',
  });
});
