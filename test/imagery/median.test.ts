import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { medianBounds, medianOfSorted, medianWithin, sketchOf, within } from '../../src/imagery/median.js';

/** Values with and without many equal ones; some places have more than a sketch has. */
const values = fc.oneof(
  fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 30 }),
  fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 2000, size: 'max' }),
  fc.array(fc.integer({ min: -1e6, max: 1e6 }), { minLength: 500, maxLength: 3000, size: 'max' }),
);
const places = fc
  .array(values, { minLength: 1, maxLength: 4 })
  .map((all) => all.map((place) => Float64Array.from(place).sort()));

test('the median of several places is that of all their values', () => {
  fc.assert(
    fc.property(places, (all) => {
      const together = Float64Array.from(all.flatMap((place) => [...place])).sort();
      const bounds = medianBounds(all.map(sketchOf));
      if (together.length === 0) return assert.equal(bounds, undefined);
      const found = medianWithin(all.map((place) => within(place, bounds!)));
      assert.equal(found, medianOfSorted(together));
    }),
    { seed: 42, numRuns: 150 },
  );
});

test('few of many different values are looked at again', () => {
  const all = [0, 1, 2].map((place) => Float64Array.from({ length: 100_000 }, (_, i) => 3 * i + place));
  const sketches = all.map(sketchOf);
  assert.ok(sketches.every(({ values }) => values.length <= 257));
  const parts = all.map((place) => within(place, medianBounds(sketches)!));
  const looked = parts.reduce((sum, part) => sum + part.values.length, 0);
  assert.ok(looked < 9000, `${looked} of 300,000`);
  assert.equal(medianWithin(parts), 149_999.5);
});

test('bounds that do not hold the median, because the values are others now, give none', () => {
  const sorted = Float64Array.from([1, 2, 3]);
  assert.equal(medianWithin([within(sorted, [2.5, 3])]), undefined);
  assert.equal(medianWithin([within(sorted, [0, 1])]), undefined);
});
