import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeTrend } from './trend.js';

const seconds = Array.from({ length: 300 }, (_, i) => 30 * i);
/** Repeats within 7 values. */
const noise = (i: number) => ((i * 37) % 7) - 3;
const of = (values: (number | undefined)[]) =>
  judgeTrend(seconds, { name: 'n', tolerance: { share: 0.1, absolute: 5 }, values });

test('series that are level, warm up in the first third, shrink, or have outliers are flat', () => {
  assert.ok(of(seconds.map((_, i) => 100 + noise(i))).isFlat);
  assert.ok(of(seconds.map((_, i) => (i < 90 ? i : 90) + noise(i))).isFlat);
  assert.ok(of(seconds.map((_, i) => 400 - i)).isFlat);
  assert.ok(of(seconds.map((_, i) => 100 + (i % 50 === 49 ? 1000 : noise(i)))).isFlat);
  assert.ok(of(seconds.map((_, i) => (i % 3 === 0 ? undefined : 100))).isFlat);
});

test('a series that grows by more than a tenth in the last two thirds is not flat', () => {
  const grown = of(seconds.map((_, i) => 100 + 0.1 * i + noise(i)));
  assert.equal(grown.isFlat, false);
  assert.ok(Math.abs(grown.growth - 20) < 1, `${grown.growth}`);
  assert.equal(of(seconds.map((_, i) => 1000 + i)).isFlat, false);
});
