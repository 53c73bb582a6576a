import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { slidingWindows, WindowBlender } from '../../../src/training/windows.js';

const geometry = fc.record({
  width: fc.integer({ min: 1, max: 90 }),
  height: fc.integer({ min: 1, max: 90 }),
  half: fc.integer({ min: 2, max: 12 }),
});

describe('slidingWindows', () => {
  it('covers every pixel with the overlap, and extends beyond the image only if that is smaller', () => {
    fc.assert(
      fc.property(geometry, ({ width, height, half }) => {
        const size = 4 * half;
        const origins = slidingWindows(width, height, size, half);
        const columns = [...new Set(origins.map(({ column }) => column))];
        const rows = [...new Set(origins.map(({ row }) => row))];
        assert.equal(origins.length, columns.length * rows.length);
        for (const [starts, length] of [
          [columns, width],
          [rows, height],
        ] as const) {
          assert.equal(starts[0], 0);
          assert.equal(starts.at(-1), Math.max(0, length - size));
          for (const [i, start] of starts.slice(1).entries()) assert.ok(start - starts[i]! <= size - half);
        }
      }),
      { seed: 7 },
    );
  });
});

describe('WindowBlender', () => {
  it('returns the image if the windows are copies of it', () => {
    fc.assert(
      fc.property(geometry, ({ width, height, half }) => {
        const size = 4 * half;
        const blend = new WindowBlender(width, height, 2);
        for (const origin of slidingWindows(width, height, size, half)) {
          blend.add(origin, size, (pixel, plane) => {
            const row = origin.row + Math.floor(pixel / size);
            return plane + 1 + row * width + origin.column + (pixel % size);
          });
        }
        for (const [plane, values] of blend.planes().entries())
          values.forEach((value, at) => {
            assert.ok(Math.abs(value - (plane + 1 + at)) < 1e-3 * (1 + at), `${value} at ${at}`);
          });
      }),
      { seed: 8, numRuns: 40 },
    );
  });

  it('blends neighbouring windows without a step', () => {
    const blend = new WindowBlender(24, 1, 1);
    blend.add({ row: 0, column: 0 }, 16, () => 0);
    blend.add({ row: 0, column: 8 }, 16, () => 1);
    const [values] = blend.planes();
    const steps = values!.slice(1).map((value, i) => value - values![i]!);
    assert.equal(values![0], 0);
    assert.equal(values![23], 1);
    assert.ok(Math.max(...steps) < 0.15 && Math.min(...steps) >= 0);
  });
});
