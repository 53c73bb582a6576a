import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import {
  linearPredictor,
  pooledScore,
  regressionMetrics,
  sufficientStatistics,
  targetStatistics,
  trainingMean,
} from '../../../src/training/evaluation.js';
import type { Patches } from '../../../src/training/patches.js';
import { ridge } from '../../../src/training/ridge-regression.js';

const SIZE = 4;
const BANDS = 3;
const PATCH_VALUES = SIZE * SIZE * BANDS;

interface Reference {
  train: number[][];
  trainTargets: number[];
  held: number[][];
  heldTargets: number[];
  ridge1: { predicted: number[]; mse: number; r2: number };
  ridge25: { predicted: number[]; mse: number; r2: number };
}

const reference: Reference = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/training/baselines.json', import.meta.url), 'utf8'),
);

/** Patches whose band means are given; pixels scatter around them. */
function patches(means: number[][], targets: number[]): Patches {
  const inputs = new Float32Array(means.length * PATCH_VALUES);
  means.forEach((bands, n) => {
    for (let i = 0; i < PATCH_VALUES; i++) {
      const swing = Math.floor(i / BANDS) % 2 === 0 ? 0.01 : -0.01;
      inputs[n * PATCH_VALUES + i] = bands[i % BANDS]! + swing;
    }
  });
  return {
    count: means.length,
    size: SIZE,
    inputBands: BANDS,
    targetBands: 1,
    inputs,
    targets: Float32Array.from(targets),
  };
}

const train = patches(reference.train, reference.trainTargets);
const held = patches(reference.held, reference.heldTargets);

function close(actual: ArrayLike<number>, expected: number[], tolerance = 1e-5): void {
  assert.equal(actual.length, expected.length);
  expected.forEach((value, i) => {
    assert.ok(Math.abs(actual[i]! - value) <= tolerance, `[${i}] is ${actual[i]}, not ${value}`);
  });
}

describe('baselines', () => {
  for (const lambda of [1, 25] as const) {
    it(`ridge regression with penalty ${lambda} predicts what scikit-learn predicts`, () => {
      const expected = reference[`ridge${lambda}`];
      const predicted = linearPredictor(ridge(sufficientStatistics(train), lambda))(held);
      close(predicted, expected.predicted);
      const { mse, r2 } = regressionMetrics({ truth: held.targets, predicted });
      close([mse, r2], [expected.mse, expected.r2], 1e-4);
    });
  }

  it('ridge regression gives a constant band no weight', () => {
    const flat = (means: number[][]) => means.map(([red, green]) => [red!, green!, 0.5]);
    const predictor = linearPredictor(
      ridge(sufficientStatistics(patches(flat(reference.train), reference.trainTargets))),
    );
    const moved = reference.held.map(([red, green]) => [red!, green!, 0.7]);
    close(
      predictor(patches(moved, reference.heldTargets)),
      [...predictor(patches(flat(reference.held), reference.heldTargets))],
      1e-3,
    );
  });

  it('the training mean is the same for every patch', () => {
    const mean = reference.trainTargets.reduce((sum, value) => sum + value, 0) / 30;
    close(trainingMean(train)(held), new Array(12).fill(mean));
  });
});

describe('metrics', () => {
  it('match scikit-learn if the true values are constant', () => {
    const truth = Float32Array.of(2, 2);
    assert.deepEqual(regressionMetrics({ truth, predicted: Float32Array.of(2, 2) }), { mse: 0, r2: 1 });
    assert.deepEqual(regressionMetrics({ truth, predicted: Float32Array.of(1, 3) }), { mse: 1, r2: 0 });
  });

  it('pooled over sets are those of all pairs as one set', () => {
    const a = { truth: Float32Array.of(0, 1), predicted: Float32Array.of(0.5, 1) };
    const b = { truth: Float32Array.of(4), predicted: Float32Array.of(3) };
    const all = { truth: Float32Array.of(0, 1, 4), predicted: Float32Array.of(0.5, 1, 3) };
    const pooled = pooledScore(
      [a, b].map(({ truth }) => targetStatistics(truth)),
      [a, b].map(regressionMetrics),
    );
    assert.deepEqual(pooled, regressionMetrics(all));
  });
});
