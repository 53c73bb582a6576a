import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  medianBounds,
  medianWithin,
  quantileSketch,
  valuesInBounds,
} from '../../src/imagery/distributed-median.js';
import { medianOfSorted } from '../../src/utils/sorted.js';
import { randomly } from '../derive/tiles.js';

/** Nodes with fewer and more values than a sketch, with and without many equal values, with separate and overlapping ranges. */
const nodeValues = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.nat(1e6)).map(([count, seed]) => {
  const random = randomly(seed);
  const pick = <T>(...choices: T[]): T => choices[Math.floor(random() * choices.length)]!;
  const range = pick(3, 50, 1e6);
  return Array.from({ length: count }, () => {
    const shift = range * pick(0, 0, 0.5, 1, -1);
    const length = pick(0, 1, 2, 30, 256, 257, 258, 400, 513, 700);
    return Float64Array.from({ length }, () => Math.floor(range * random() + shift)).sort();
  });
});

test('the median of several nodes is the median of all their values', () => {
  fc.assert(
    fc.property(nodeValues, (all) => {
      const together = Float64Array.from(all.flatMap((values) => [...values])).sort();
      const bounds = medianBounds(all.map(quantileSketch));
      if (together.length === 0) return assert.equal(bounds, undefined);
      const found = medianWithin(all.map((values) => valuesInBounds(values, bounds!)));
      assert.equal(found, medianOfSorted(together));
      const middle = Math.floor(together.length / 2);
      assert.equal(found, (together[middle]! + together[together.length - 1 - middle]!) / 2);
    }),
    { seed: 42, numRuns: 150 },
  );
});

test('a second pass examines only few of many different values', () => {
  const all = [0, 1, 2].map((node) => Float64Array.from({ length: 100_000 }, (_, i) => 3 * i + node));
  const sketches = all.map(quantileSketch);
  assert.ok(sketches.every(({ values }) => values.length <= 257));
  const parts = all.map((values) => valuesInBounds(values, medianBounds(sketches)!));
  const examined = parts.reduce((sum, part) => sum + part.values.length, 0);
  assert.ok(examined < 9000, `${examined} of 300,000`);
  assert.equal(medianWithin(parts), 149_999.5);
});

test('bounds that no longer contain the median, because the values have changed, give no median', () => {
  const sorted = Float64Array.from([1, 2, 3]);
  assert.equal(medianWithin([valuesInBounds(sorted, [2.5, 3])]), undefined);
  assert.equal(medianWithin([valuesInBounds(sorted, [0, 1])]), undefined);
});

test('a sketch has the first and the last value and values at regular steps between them', () => {
  const sorted = (length: number) => Float64Array.from({ length }, (_, i) => i);
  assert.deepEqual(quantileSketch(sorted(0)), { count: 0, step: 1, values: [] });
  assert.deepEqual(quantileSketch(sorted(256)).values, [...sorted(256)]);
  const odd = quantileSketch(sorted(257));
  assert.deepEqual([odd.step, odd.values.length, odd.values[1], odd.values.at(-1)], [2, 129, 2, 256]);
  const even = quantileSketch(sorted(258));
  assert.deepEqual(
    [even.step, even.values.length, even.values.at(-2), even.values.at(-1)],
    [2, 130, 256, 257],
  );
});

test('each value within the bounds is listed once with its count', () => {
  assert.deepEqual(valuesInBounds(Float64Array.of(1, 2, 2, 3, 3, 3, 4), [2, 3]), {
    count: 7,
    below: 1,
    values: [
      [2, 2],
      [3, 3],
    ],
  });
});
