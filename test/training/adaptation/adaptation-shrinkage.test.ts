/** How much of their fine-tuning cells keep. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { estimateShrinkage, updateFactor } from '../../../src/training/adaptation/adaptation-shrinkage.js';
import { interpolateWeights } from '../../../src/training/adaptation/interpolate-weights.js';
import { getModelSpec } from '../../../src/training/index.js';

const spec = getModelSpec('ndvi');

const cell = (half: number, agreement: number) => ({ patches: 2 * half, half, agreement });

test('the estimate is the value with which the agreements were made', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 8, max: 240 }), { minLength: 1, maxLength: 20 }),
      fc.double({ min: 1, max: 1e4, noNaN: true }),
      (halves, n0) => {
        const cells = halves.map((half) => cell(half, half / (half + n0)));
        const estimate = estimateShrinkage(cells);
        assert.ok(Math.abs(estimate / n0 - 1) < 0.01, `${estimate} instead of ${n0}`);
      },
    ),
    { seed: 1 },
  );
});

test('noise around the agreements of many cells hardly changes the estimate', () => {
  const cells = Array.from({ length: 200 }, (_, i) =>
    cell(100 + i, (100 + i) / (100 + i + 150) + (i % 2 ? 0.4 : -0.4)),
  );
  assert.ok(Math.abs(estimateShrinkage(cells) / 150 - 1) < 0.02);
});

test('cells whose halves do not agree keep the base model', () => {
  for (const cells of [[cell(100, 0)], [cell(100, 0.5), cell(100, -0.6)]]) {
    const n0 = estimateShrinkage(cells);
    assert.equal(n0, Infinity);
    assert.equal(updateFactor(spec, 480, n0), 0);
  }
});

test('a cell keeps more of its update the more patches it has, and never all of it', () => {
  assert.equal(estimateShrinkage([cell(100, 1)]), 0);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 479 }),
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      (patches, n0) => {
        const factor = updateFactor(spec, patches, n0);
        assert.ok(factor > 0 && factor < updateFactor(spec, patches + 1, n0));
        assert.ok(factor <= 0.75);
      },
    ),
    { seed: 1 },
  );
});

test('factor 0 gives the weights of the base, factor 1 those of the fine-tuning, and others lie between', () => {
  const values = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true, min: -1e3, max: 1e3 }), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(values, values, fc.double({ min: 0, max: 1, noNaN: true }), (a, b, factor) => {
      const length = Math.min(a.length, b.length);
      const of = (all: number[]) => [{ shape: [length], values: Float32Array.from(all.slice(0, length)) }];
      const [base, tuned] = [of(a), of(b)];
      assert.deepEqual(interpolateWeights(base, tuned, 0), base);
      assert.deepEqual(interpolateWeights(base, tuned, 1), tuned);
      const [between] = interpolateWeights(base, tuned, factor);
      between!.values.forEach((value, i) => {
        const ends = [base[0]!.values[i]!, tuned[0]!.values[i]!];
        const slack = 1e-3;
        assert.ok(value >= Math.min(...ends) - slack && value <= Math.max(...ends) + slack);
      });
    }),
    { seed: 1 },
  );
});
