/** What a model must beat to be worth its training: the training mean, and ridge regression on the band means of patches. */
import { meanOf } from './metrics.js';
import { PATCH_BANDS, PATCH_VALUES, type PatchSet } from './patches.js';

/** Penalty on the squared weights of standardised features, the intercept left out (scikit-learn's `alpha`). */
const RIDGE_LAMBDA = 1;

export type Predictor = (patches: PatchSet) => Float32Array;

export function trainingMean(train: PatchSet): Predictor {
  const mean = meanOf(train.targets);
  return ({ count }) => new Float32Array(count).fill(mean);
}

/**
 * Ridge regression in closed form: weights w solve (Z'Z + lambda I) w = Z'(y - mean y), with Z the band means less their
 * training mean over their training standard deviation.
 */
export function ridge(train: PatchSet, lambda = RIDGE_LAMBDA): Predictor {
  const features = bandMeans(train);
  const centre = columnMeans(features);
  const spread = columnMeans(features.map((row) => row.map((value, b) => (value - centre[b]) ** 2))).map(
    // A constant band says nothing; any spread but zero keeps its weight at zero.
    (variance) => Math.sqrt(variance) || 1,
  );
  const standardised = (row: number[]) => row.map((value, b) => (value - centre[b]) / spread[b]);
  const z = features.map(standardised);
  const intercept = meanOf(train.targets);
  const gram = centre.map((_, a) =>
    centre.map((__, b) => z.reduce((sum, row) => sum + row[a] * row[b], a === b ? lambda : 0)),
  );
  const moment = centre.map((_, a) =>
    z.reduce((sum, row, n) => sum + row[a] * (train.targets[n] - intercept), 0),
  );
  const weights = solveByCholesky(gram, moment);
  return (patches) =>
    Float32Array.from(bandMeans(patches), (row) =>
      standardised(row).reduce((sum, value, b) => sum + weights[b] * value, intercept),
    );
}

function bandMeans({ count, inputs }: PatchSet): number[][] {
  return Array.from({ length: count }, (_, n) => {
    const sums = new Array<number>(PATCH_BANDS).fill(0);
    for (let i = 0; i < PATCH_VALUES; i++) sums[i % PATCH_BANDS] += inputs[n * PATCH_VALUES + i];
    return sums.map((sum) => sum / (PATCH_VALUES / PATCH_BANDS));
  });
}

function columnMeans(rows: number[][]): number[] {
  return Array.from(
    { length: PATCH_BANDS },
    (_, b) => rows.reduce((sum, row) => sum + row[b], 0) / rows.length,
  );
}

/** Solves a x = b for a symmetric positive definite matrix: a = L L', then L y = b, then L' x = y. */
function solveByCholesky(a: number[][], b: number[]): number[] {
  const n = b.length;
  const lower = a.map((row) => row.map(() => 0));
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = a[i][j];
      for (let k = 0; k < j; k++) sum -= lower[i][k] * lower[j][k];
      lower[i][j] = i === j ? Math.sqrt(sum) : sum / lower[j][j];
    }
  }
  const x = [...b];
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) x[i] -= lower[i][k] * x[k];
    x[i] /= lower[i][i];
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= lower[k][i] * x[k];
    x[i] /= lower[i][i];
  }
  return x;
}
