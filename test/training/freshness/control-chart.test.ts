/** The control chart: which series of dates are a change. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type ChartPoint,
  dateSpread,
  expectedValue,
  judgeDeviations,
  knownDeviations,
  placeSpread,
  pooledSpread,
} from '../../../src/training/freshness/control-chart.js';

const DAY = 86_400_000;
const value = fc.double({ min: -20, max: 5, noNaN: true });
const points = fc.array(
  fc.record({ time: fc.integer({ min: 0, max: 4000 }).map((day) => day * DAY), value }),
  { minLength: 1, maxLength: 30 },
);
const time = fc.integer({ min: 0, max: 8000 }).map((day) => day * DAY);

test('the expected value lies between the known ones, and moves with them', () => {
  fc.assert(
    fc.property(points, time, fc.double({ min: -5, max: 5, noNaN: true }), (known, at, shift) => {
      const expected = expectedValue(known, at);
      const values = known.map((point) => point.value);
      assert.ok(expected >= Math.min(...values) - 1e-9 && expected <= Math.max(...values) + 1e-9);
      const moved = known.map((point) => ({ ...point, value: point.value + shift }));
      assert.ok(Math.abs(expectedValue(moved, at) - expected - shift) < 1e-9);
    }),
  );
});

test('a date is compared with the dates of its season', () => {
  const year = (winter: number, summer: number): ChartPoint[] =>
    Array.from({ length: 12 }, (_, month) => ({
      time: Date.UTC(2022, month, 15),
      value: month > 3 && month < 9 ? summer : winter,
    }));
  const known = year(-2, -7);
  assert.ok(expectedValue(known, Date.UTC(2025, 6, 10)) < -6.5);
  assert.ok(expectedValue(known, Date.UTC(2025, 0, 3)) > -2.7);
  const summer = known.slice(5, 7);
  assert.equal(dateSpread(summer, Date.UTC(2023, 6, 1), 0.3), 0.3);
  assert.equal(dateSpread(summer, Date.UTC(2023, 11, 1), 0.3), 0.5);
  assert.deepEqual(knownDeviations(known.slice(0, 1)), []);
});

test('the spread ignores outliers of some places, and has a minimum', () => {
  const normal = Array.from({ length: 40 }, (_, i) => 0.3 * Math.sin(i));
  assert.ok(pooledSpread([...normal, 9, -9, 12]) < 0.45);
  assert.equal(pooledSpread(new Array(20).fill(0)), 0.25);
  assert.equal(pooledSpread([5, 5]), 0.5);
  assert.ok(Math.abs(placeSpread([], 0.3) - 0.3) < 1e-9);
  assert.ok(placeSpread([2, -2, 2], 0.3) > 0.9);
});

test('a large step is detected at once, a small one later, and an outlier that passes never', () => {
  assert.deepEqual(judgeDeviations([0, 0.5, -1, 6, 5]), { firstDrifted: 3 });
  assert.deepEqual(judgeDeviations([0, 6]), { firstDrifted: 1 });
  assert.deepEqual(judgeDeviations([0, 6, 0, 0.2]), {});
  const small = judgeDeviations([0, 0, ...new Array(6).fill(2.5)]);
  assert.ok(small.firstDrifted! > 2 && small.firstDrifted! <= 5, `${small.firstDrifted}`);
  assert.deepEqual(judgeDeviations(new Array(30).fill(1)), {});
  assert.deepEqual(judgeDeviations(new Array(30).fill(-9)), {});
  assert.deepEqual(judgeDeviations([]), {});
});

test('larger deviations never undo a change, and dates within all limits are none', () => {
  const scores = fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(scores, fc.double({ min: 0, max: 20, noNaN: true }), (series, more) => {
      const { firstDrifted } = judgeDeviations(series);
      const larger = judgeDeviations(series.map((score) => score + more)).firstDrifted;
      if (firstDrifted !== undefined) assert.ok(larger !== undefined && larger <= firstDrifted);
    }),
  );
  fc.assert(
    fc.property(fc.array(fc.double({ min: -10, max: 1.4, noNaN: true }), { maxLength: 40 }), (series) =>
      assert.deepEqual(judgeDeviations(series), {}),
    ),
  );
});
