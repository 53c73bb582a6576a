/** Abundances fulfil the Karush-Kuhn-Tucker conditions, and mixed abundances are recovered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AbundanceSolver } from '../../src/hyperspectral/methods/abundances.js';
import { random } from '../raster/images.js';

/** Endmembers of several kinds, one row each. All pairs, or all endmembers, may be almost equal. */
function endmembersOf(kind: 'random' | 'pairs' | 'alike', count: number, bands: number, next: () => number) {
  const rows = Array.from({ length: count }, () => Array.from({ length: bands }, next));
  return Float64Array.from(
    rows.flatMap((row, k) => {
      if (kind === 'pairs' && k % 2 === 1) return row.map((value, b) => rows[k - 1]![b]! + 1e-5 * value);
      return kind === 'alike' ? row.map((value, b) => rows[0]![b]! + 1e-4 * value) : row;
    }),
  );
}

/** Spectra of zeros, mixtures, an endmember, on an edge of the simplex, and far outside the simplex. */
function spectraOf(endmembers: Float64Array, count: number, next: () => number): Float64Array[] {
  const bands = endmembers.length / count;
  const mix = (share: (k: number) => number) => {
    const shares = Array.from({ length: count }, (_, k) => share(k));
    return Float64Array.from({ length: bands }, (_, b) =>
      shares.reduce((sum, one, k) => sum + one * endmembers[k * bands + b]!, 0),
    );
  };
  return [
    ...[0, 1 / count, -1, 1000].map((share) => mix(() => share)),
    mix((k) => Number(k === count - 1)),
    mix((k) => (k === 0 || k === count - 1 ? 0.5 : 0)),
    ...Array.from({ length: 6 }, () => mix(() => next() - 0.3)),
    ...Array.from({ length: 6 }, () => Float64Array.from({ length: bands }, next)),
    ...Array.from({ length: 6 }, () => Float64Array.from({ length: bands }, () => 100 * (next() - 0.5))),
  ];
}

const productsOf = (endmembers: Float64Array, count: number, spectrum: ArrayLike<number>) => {
  const bands = endmembers.length / count;
  return Array.from({ length: count }, (_, k) => {
    let sum = 0;
    for (let b = 0; b < bands; b++) sum += spectrum[b]! * endmembers[k * bands + b]!;
    return sum;
  });
};

const cases = fc.record({
  count: fc.oneof(fc.integer({ min: 1, max: 14 }), fc.constantFrom(30, 31, 40)),
  more: fc.integer({ min: 1, max: 30 }),
  sumsToOne: fc.boolean(),
  kind: fc.constantFrom('random', 'pairs', 'alike'),
  seed: fc.nat(),
});

test('abundances fulfil the conditions within 1e-12, in every order of the spectra', () => {
  fc.assert(
    fc.property(cases, ({ count, more, sumsToOne, kind, seed }) => {
      const next = random(seed);
      const endmembers = endmembersOf(kind, count, count + more, next);
      const all = spectraOf(endmembers, count, next).map((x) => productsOf(endmembers, count, x));
      const solver = new AbundanceSolver(endmembers, count, sumsToOne);
      const found = all.map((products) => solver.solve(products, 0, 1).slice());
      const backwards = new AbundanceSolver(endmembers, count, sumsToOne);
      for (const [at, products] of [...all.entries()].reverse())
        assert.deepEqual(backwards.solve(products, 0, 1), found[at]);
      const gram = Array.from({ length: count }, (_, k) =>
        productsOf(endmembers, count, endmembers.subarray(k * (count + more), (k + 1) * (count + more))),
      );
      for (const [at, products] of all.entries()) {
        const shares = found[at]!;
        const gains = products.map((product, k) =>
          shares.reduce((sum, share, i) => sum - gram[k]![i]! * share, product),
        );
        const positive = gains.filter((_, k) => shares[k]! > 0);
        const shift = sumsToOne ? positive.reduce((sum, gain) => sum + gain, 0) / positive.length : 0;
        const sizes = [...products.map(Math.abs), ...(sumsToOne ? gram.flat() : [])];
        const scale = Math.max(1e-300, ...sizes);
        if (sumsToOne) assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 1) < 1e-12);
        for (const [k, share] of shares.entries()) {
          const error = (gains[k]! - shift) / scale;
          assert.ok(share >= 0 && (share > 0 ? Math.abs(error) : error) <= 1e-12, `${k} ${share}: ${error}`);
        }
      }
    }),
    { seed: 5, numRuns: 200 },
  );
});

test('the residual belongs to the abundances', () => {
  const next = random(4);
  const [count, bands] = [6, 30];
  const endmembers = endmembersOf('random', count, bands, next);
  for (const sumsToOne of [true, false])
    for (const spectrum of spectraOf(endmembers, count, next)) {
      const solver = new AbundanceSolver(endmembers, count, sumsToOne);
      const shares = solver.solve(productsOf(endmembers, count, spectrum), 0, 1);
      const square = spectrum.reduce((sum, value) => sum + value * value, 0);
      const wanted = spectrum.reduce((sum, value, b) => {
        const rest = shares.reduce((left, share, k) => left - share * endmembers[k * bands + b]!, value);
        return sum + rest * rest;
      }, 0);
      assert.ok(Math.abs(solver.residual(square) - wanted) <= 1e-13 * (square + wanted + 1));
    }
});

test('mixed spectra are unmixed', () => {
  const next = random(9);
  const [count, bands] = [5, 40];
  const endmembers = Float64Array.from({ length: count * bands }, () => next());
  const solver = new AbundanceSolver(endmembers, count, true);
  for (let pixel = 0; pixel < 200; pixel++) {
    const raw = Array.from({ length: count }, () => (next() < 0.4 ? 0 : next()));
    const total = raw.reduce((sum, value) => sum + value, 0) || 1;
    const shares = raw.map((value) => value / total);
    if (raw.every((value) => value === 0)) continue;
    const spectrum = Array.from({ length: bands }, (_, b) =>
      shares.reduce((sum, share, k) => sum + share * endmembers[k * bands + b]!, 0),
    );
    const products = shares.map((_, k) =>
      spectrum.reduce((sum, value, b) => sum + value * endmembers[k * bands + b]!, 0),
    );
    const found = solver.solve(products, 0, 1);
    for (const [k, share] of shares.entries()) assert.ok(Math.abs(found[k]! - share) < 1e-10);
  }
});

test('an endmember that is a mixture of others is refused', () => {
  const endmembers = Float64Array.from([1, 2, 3, 4, 5, 7, 2.5, 3.5, 5]);
  assert.throws(() => new AbundanceSolver(endmembers, 3, true), { code: 'TW_ANALYSIS_DEPENDENT' });
});
