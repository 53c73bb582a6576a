/** Abundances fulfil the conditions of Karush, Kuhn and Tucker, and those that were mixed are found again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AbundanceSolver } from '../../src/analysis/pixels/abundances.js';
import { random } from '../raster/images.js';

const cases = fc.record({
  count: fc.integer({ min: 1, max: 10 }),
  more: fc.integer({ min: 0, max: 30 }),
  sumsToOne: fc.boolean(),
  spread: fc.constantFrom(0.02, 0.3, 1),
  seed: fc.nat(),
});

test('no abundance is negative, no change of them lowers the residual, and constrained ones add up to 1', () => {
  fc.assert(
    fc.property(cases, ({ count, more, sumsToOne, spread, seed }) => {
      const next = random(seed);
      const bands = count + more;
      const endmembers = Float64Array.from({ length: count * bands }, () => 0.5 + spread * (next() - 0.5));
      let solver: AbundanceSolver;
      try {
        solver = new AbundanceSolver(endmembers, count, sumsToOne);
      } catch (error) {
        assert.equal((error as { code: string }).code, 'TW_ANALYSIS_DEPENDENT');
        return;
      }
      for (let pixel = 0; pixel < 20; pixel++) {
        const spectrum = Float64Array.from({ length: bands }, () => next());
        const dot = (k: number, x: Float64Array) =>
          x.reduce((sum, value, b) => sum + value * endmembers[k * bands + b]!, 0);
        const products = Array.from({ length: count }, (_, k) => dot(k, spectrum));
        const shares = solver.solve(products, 0, 1).slice();
        const fitted = spectrum.map((_, b) =>
          shares.reduce((sum, a, k) => sum + a * endmembers[k * bands + b]!, 0),
        );
        const gradient = products.map((product, k) => product - dot(k, fitted));
        const sum = shares.reduce((total, share) => total + share, 0);
        if (sumsToOne) assert.ok(Math.abs(sum - 1) < 1e-12, `${sum}`);
        const positive = gradient.filter((_, k) => shares[k]! > 0);
        const shift = sumsToOne ? positive.reduce((total, value) => total + value, 0) / positive.length : 0;
        const scale = Math.max(...products) * Math.max(1, ...shares);
        for (const [k, share] of shares.entries()) {
          assert.ok(share >= 0);
          const slack = (gradient[k]! - shift) / scale;
          assert.ok(slack < 1e-11, `${k}: ${slack}`);
          if (share > 1e-9) assert.ok(Math.abs(slack) < 1e-9, `${k} ${share}: ${slack}`);
        }
      }
    }),
    { seed: 5, numRuns: 300 },
  );
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
