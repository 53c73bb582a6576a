/** Intervals cover the true value about as often as they say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootstrapInterval, bootstrapIntervals, comparePlaces } from '../../src/utils/bootstrap.js';
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

const errors = (values: number[], name = (i: number) => `place${i}`) =>
  new Map(values.map((value, i) => [name(i), [value]]));

/** Errors of `ndvi` models at eight places of a Landsat 8 scene: medians of three seeds. */
const LANDSAT = {
  partitioned: [4.4e-4, 4.9e-3, 7.94e-5, 3.06e-4, 2.3e-3, 1.17e-3, 5.08e-4, 5.47e-4],
  distributed: [1.06e-3, 4.53e-3, 1.47e-4, 7.5e-4, 1.54e-3, 4.08e-4, 6.21e-4, 2.43e-3],
  regional: [6.8e-4, 3.8e-3, 7.07e-5, 5.91e-4, 1.58e-3, 3.91e-4, 5.75e-4, 1.56e-3],
};

/**
 * From NumPy 2 and SciPy 1.17, with l = log(first / second): bs = l[g.integers(0, 8, (400000, 8))].mean(1),
 * tail = norm.cdf(-(8 / 7) ** 0.5 * t.ppf(0.975, 7)), exp(l.mean()), exp(quantile(bs, [tail, 1 - tail])).
 */
test('ratios and intervals are those of NumPy', () => {
  for (const [first, second, ratio, low, high, better, verdict] of [
    ['partitioned', 'distributed', 0.727, 0.383, 1.448, 5, 'cannot be distinguished'],
    ['partitioned', 'regional', 0.948, 0.553, 1.668, 4, 'cannot be distinguished'],
    ['distributed', 'regional', 1.305, 1.078, 1.637, 1, 'worse'],
  ] as const) {
    const compared = comparePlaces(errors(LANDSAT[first]), errors(LANDSAT[second]));
    assert.ok(Math.abs(compared.ratio! / ratio - 1) < 1e-3, `${compared.ratio}`);
    const [from, to] = compared.interval!;
    assert.ok(Math.abs(from / low - 1) < 0.03 && Math.abs(to / high - 1) < 0.03, `${from} to ${to}`);
    assert.deepEqual([compared.better, compared.places, compared.verdict], [better, 8, verdict]);
  }
});

test('equal errors are the same; swapped sides have the inverse ratio, interval and verdict', () => {
  const { next } = randomStream(11);
  const seen = new Set<string>();
  for (let sample = 0; sample < 60; sample++) {
    const places = 1 + Math.floor(next() * 20);
    const shift = 2 * next() - 1;
    const values = (by: number) => Array.from({ length: places }, () => Math.exp(by + normal(next) / 2));
    const [a, b] = [errors(values(shift)), errors(values(0))];
    const equal = comparePlaces(a, a);
    assert.deepEqual([equal.verdict, equal.ratio, equal.better, equal.worse], ['the same', 1, 0, 0]);
    const [one, other] = [comparePlaces(a, b), comparePlaces(b, a)];
    assert.ok(Math.abs(one.ratio! * other.ratio! - 1) < 1e-12);
    assert.deepEqual([one.better, one.worse], [other.worse, other.better]);
    assert.equal(one.interval === undefined, places < 6);
    for (const end of [0, 1])
      if (one.interval) assert.ok(Math.abs(one.interval[end]! * other.interval![1 - end]! - 1) < 1e-12);
    const inverse = { better: 'worse', worse: 'better' }[one.verdict as string] ?? one.verdict;
    assert.equal(other.verdict, inverse);
    seen.add(one.verdict);
    // Errors in another unit, and places in another order.
    const scaled = (side: typeof a) => new Map([...side].map(([place, [error]]) => [place, [4 * error!]]));
    assert.equal(comparePlaces(scaled(a), scaled(b)).verdict, one.verdict);
    assert.deepEqual(comparePlaces(new Map([...a].reverse()), b), one);
  }
  assert.deepEqual([...seen].sort(), ['better', 'cannot be distinguished', 'too few places', 'worse']);
});

test('one extreme place does not decide, however large its ratio is', () => {
  for (const places of [6, 8, 20])
    for (const extreme of [1e-9, 1e-3, 1e3, 1e9, 0, Infinity]) {
      // Half of the other places are slightly better, and half slightly worse.
      const values = Array.from({ length: places }, (_, i) => (i === 0 ? extreme : i % 2 ? 1.02 : 1 / 1.02));
      const compared = comparePlaces(errors(values), errors(values.map(() => 1)));
      assert.equal(compared.verdict, 'cannot be distinguished', `${extreme} at one of ${places}`);
      assert.ok(Number.isFinite(compared.ratio) && compared.ratio! > 0);
    }
});

test('seeds do not count as places: repeated or more seeds change no interval', () => {
  const { partitioned, regional } = LANDSAT;
  const alone = comparePlaces(errors(partitioned), errors(regional));
  const repeated = (values: number[], times: number) =>
    new Map(values.map((value, i) => [`place${i}`, new Array<number>(times).fill(value)]));
  for (const seeds of [2, 5, 40])
    assert.deepEqual(comparePlaces(repeated(partitioned, seeds), repeated(regional, 3)), alone);
  const few = comparePlaces(repeated(partitioned.slice(0, 5), 40), repeated(regional.slice(0, 5), 40));
  assert.deepEqual([few.verdict, few.interval, few.places], ['too few places', undefined, 5]);
  // A seed that failed at a place does not move its median far.
  const outlier = new Map(partitioned.map((value, i) => [`place${i}`, [value, 1e3, value]]));
  assert.deepEqual(comparePlaces(outlier, errors(regional)), alone);
});

test('only places with an error on both sides count', () => {
  const two = errors([1, 2, 3]);
  for (const bad of [[], [Number.NaN], [1, Number.NaN], [-1]]) {
    const compared = comparePlaces(two, new Map([...errors([2, 4]), ['place2', bad], ['elsewhere', [1]]]));
    assert.deepEqual([compared.places, compared.better, compared.ratio], [2, 2, 0.5]);
  }
  assert.deepEqual(comparePlaces(two, new Map()), {
    ...{ places: 0, better: 0, worse: 0, verdict: 'too few places' },
  });
  const zero = errors([0, 0, 0, 0, 0, 0]);
  assert.equal(comparePlaces(zero, zero).verdict, 'the same');
  assert.equal(comparePlaces(zero, errors([1, 1, 1, 1, 1, 1])).verdict, 'better');
});
