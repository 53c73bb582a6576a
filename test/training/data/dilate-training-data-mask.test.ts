import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { dilateMask } from '../../../src/training/prior.js';

test('dilation matches a plain loop over all neighbours', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 0, max: 3 }),
      fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 81, maxLength: 81 }),
      (width, height, radius, values) => {
        const mask = Uint8Array.from(values.slice(0, width * height), (value) => (value === 0 ? 1 : 0));
        const expected = mask.map((_, at) => {
          const [x, y] = [at % width, Math.floor(at / width)];
          return mask.some((value, index) => {
            const [column, row] = [index % width, Math.floor(index / width)];
            return value === 1 && Math.abs(column - x) <= radius && Math.abs(row - y) <= radius;
          })
            ? 1
            : 0;
        });
        assert.deepEqual(dilateMask(mask, width, height, radius), expected);
      },
    ),
    { seed: 3, numRuns: 300 },
  );
});
