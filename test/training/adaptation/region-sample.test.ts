/** Patches of other cells for the adaptation of a base, and the part of a fine-tuning that a cell keeps. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { interpolateWeights } from '../../../src/training/adaptation.js';
import {
  encodeSample,
  keptFactor,
  readSamples,
  sharingCells,
  withOtherCells,
  writeSamples,
} from '../../../src/training/fine-tuning.js';
import { getModelSpec } from '../../../src/training/index.js';
import type { Patches } from '../../../src/training/patches.js';
import { tempFolder } from '../../support/temp.js';

/** Patches of 2 x 2 pixels whose values are all `value`. */
function patchesOf(count: number, value: number): Patches {
  const filled = (length: number) => new Float32Array(length).fill(value);
  return {
    ...{ count, size: 2, inputBands: 3, targetBands: 1 },
    inputs: filled(12 * count),
    targets: filled(4 * count),
    targetMask: filled(4 * count),
  };
}

test('a cell trains on its own patches and half as many of all other cells', () => {
  const own = patchesOf(8, 1);
  const samples = ['a', 'own', 'b'].map((cell, i) => ({
    ...{ cell, dates: [`2024-0${i + 1}-01T00:00:00Z`, '2023-01-01T00:00:00Z'] },
    patches: patchesOf(6, 10 * (i + 1)),
  }));
  const { patches, others, dates } = withOtherCells('own', own, samples);
  assert.deepEqual([patches.count, others], [12, 4]);
  assert.deepEqual(dates, ['2023-01-01T00:00:00Z', '2024-01-01T00:00:00Z', '2024-03-01T00:00:00Z']);
  const values = Array.from({ length: 12 }, (_, n) => patches.inputs[12 * n]);
  assert.deepEqual(values, [1, 1, 1, 1, 1, 1, 1, 1, 10, 10, 30, 30]);
  assert.deepEqual([...patches.targetMask!.subarray(28, 36)], [1, 1, 1, 1, 10, 10, 10, 10]);
  // The patches of the cell are the same array as before.
  assert.deepEqual(own, patchesOf(8, 1));
  assert.deepEqual(withOtherCells('own', own, samples.slice(1, 2)), {
    ...{ patches: own, others: 0, dates: [] },
  });
});

test('few cells of a large region share patches, in total half as many as a cell has at most', () => {
  const spec = getModelSpec('ndvi');
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 300 }), (count) => {
      const all = Array.from({ length: count }, (_, i) => `u${String(i).padStart(3, '0')}`);
      const { cells, patches } = sharingCells(spec, all.toReversed());
      assert.ok(cells.length <= 24 && cells.length >= Math.min(count, 24));
      assert.equal(new Set(cells).size, cells.length);
      // Without its own, a cell has as many as it uses.
      if (count > 1) assert.ok((cells.length - 1) * patches >= spec.maxPatches / 2);
      assert.ok(cells.length * patches < spec.maxPatches / 2 + 24 + 2 * patches);
    }),
    { seed: 1 },
  );
});

test('samples are the same after their way through a file; a damaged file has none', async (t) => {
  const path = join(await tempFolder(t), 'samples');
  const samples = [1.5, 0.1].map((value, i) => ({
    ...{ cell: `cell ${i}`, dates: [`2024-0${i + 1}-01T00:00:00Z`] },
    patches: patchesOf(i + 1, value),
  }));
  await writeSamples(path, samples.map(encodeSample));
  assert.deepEqual(await readSamples(path), samples);
  await writeFile(path, 'damaged');
  assert.deepEqual(await readSamples(path), []);
  assert.deepEqual(await readSamples(`${path}.none`), []);
});

test('a cell keeps more of its fine-tuning with more patches of its own, and with more of other cells', () => {
  assert.deepEqual(
    [20, 60, 180, 540].map((patches) => keptFactor(patches, patches / 2)),
    [0.25, 0.5, 0.75, 0.9],
  );
  assert.deepEqual(
    [0, 45, 90, 180].map((others) => keptFactor(180, others)),
    [0.375, 0.5625, 0.75, 0.75],
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
