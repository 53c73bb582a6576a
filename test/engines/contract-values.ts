/** Values and comparisons of the contract of the compute primitives. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { ComputePrimitives } from '../../src/engines/compute-primitives/primitives.js';
import type { PoolingOperation } from '../../src/engines/load.js';

/** Loops of an engine. The addon leaves pooling to those on the heap. */
export type Tested = Omit<ComputePrimitives, PoolingOperation> &
  Partial<Pick<ComputePrimitives, PoolingOperation>>;

/** Small whole numbers, whose sums are exact in float32. */
export function whole(length: number, seed: number): Float32Array {
  let state = seed + 1;
  return Float32Array.from({ length }, () => {
    state = (state * 16807) % 2147483647;
    return (state % 9) - 4;
  });
}

export const one = <T>(value: fc.Arbitrary<T>) => fc.tuple(value, value);

export function uniform(length: number, seed: number): Float32Array {
  let state = seed + 1;
  return Float32Array.from({ length }, () => {
    state = (state * 16807) % 2147483647;
    return (2 * state) / 2147483647 - 1;
  });
}

export function near(actual: number, expected: number, relative: number): void {
  // Written so that a NaN fails.
  const right = Math.abs(actual - expected) <= relative * Math.max(1, Math.abs(expected));
  assert.ok(right, `${actual}, not ${expected}`);
}
