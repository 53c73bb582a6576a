/** Intervals cover the true value about as often as they say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootstrapInterval, bootstrapIntervals } from '../../src/utils/bootstrap.js';
import { randomStream } from '../../src/utils/random.js';

/** Approximately normal, with mean 0. */
const normal = (random: () => number) => Array.from({ length: 12 }, random).reduce((a, b) => a + b, -6);

const weightedMean = (values: ArrayLike<number>, counts: Uint32Array) => {
  let sum = 0;
  let total = 0;
  for (let i = 0; i < counts.length; i++) {
    sum += counts[i]! * values[i]!;
    total += counts[i]!;
  }
  return sum / total;
};

for (const units of [6, 9, 15, 40])
  test(`the interval of a mean of ${units} units covers the true mean in about 95 of 100 samples`, () => {
    const { next } = randomStream(7);
    let covered = 0;
    for (let sample = 0; sample < 200; sample++) {
      const values = Float64Array.from({ length: units }, () => normal(next));
      const [low, high] = bootstrapInterval([units], (drawn) => weightedMean(values, drawn))!;
      if (low <= 0 && high >= 0) covered++;
    }
    assert.ok(covered >= 180 && covered <= 198, `${covered} of 200`);
  });

test('several statistics of the same draws have the intervals of each of them', () => {
  const values = [3, 1, 4, 1, 5, 9, 2, 6];
  const mean = (drawn: Uint32Array) => weightedMean(values, drawn);
  const of = [mean, (drawn: Uint32Array) => 10 - 2 * mean(drawn), () => Number.NaN];
  assert.deepEqual(
    bootstrapIntervals([8], (drawn) => of.map((statistic) => statistic(drawn))),
    of.map((statistic) => bootstrapInterval([8], statistic)),
  );
  assert.deepEqual(
    bootstrapIntervals([5], () => [1]),
    [],
  );
});

test('an interval over two crossed factors is wider than that over one of them', () => {
  const { next } = randomStream(3);
  const rows = Float64Array.from({ length: 12 }, () => normal(next));
  const columns = Float64Array.from({ length: 12 }, () => normal(next));
  const width = ([low, high]: [number, number]) => high - low;
  const both = bootstrapInterval([12, 12], (a, b) => weightedMean(rows, a) + weightedMean(columns, b))!;
  const even = new Uint32Array(12).fill(1);
  const single = bootstrapInterval([12], (a) => weightedMean(rows, a) + weightedMean(columns, even))!;
  assert.ok(width(both) > 1.1 * width(single));
});

test('fewer than six units, or no finite value, have no interval; equal numbers have equal intervals', () => {
  const mean = (drawn: Uint32Array) => weightedMean([1, 2, 3, 4, 5, 6], drawn);
  assert.equal(bootstrapInterval([5], mean), undefined);
  assert.equal(bootstrapInterval([6, 5], mean), undefined);
  assert.equal(
    bootstrapInterval([6], () => Number.NaN),
    undefined,
  );
  assert.deepEqual(bootstrapInterval([6], mean), bootstrapInterval([6], mean));
});
