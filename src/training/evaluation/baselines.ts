/** What a model must beat to be worth its training: the training mean, and ridge regression. */

import type { Patches } from '../patches/patches.js';
import type { Metrics } from './metrics.js';

export interface Baselines {
  mean: Metrics;
  /** Ridge regression on the band means of a patch, or on the bands of each pixel where the target is a map. */
  linear: Metrics;
  /** For a model that removes cloud: the cloudy date as it is. */
  unchanged?: Metrics;
  /** For a model that removes cloud: at each pixel the clear value that is nearest in time, and the median of the clear values. */
  nearest?: Metrics;
  median?: Metrics;
}

/** Penalty on the squared weights of standardised features, the intercept left out (scikit-learn's `alpha`). */
const RIDGE_LAMBDA = 1;

/** Of a set of patches, in the shape of its targets. */
export type Predictor = (patches: Patches) => Float32Array;

export function trainingMean(train: Patches): Predictor {
  const mean = targetMeans(train);
  return ({ targets }) => targets.map((_, i) => mean[i % mean.length]);
}

/** The mean of each target band, over all that counts. */
export function targetMeans(patches: Patches): number[] {
  const { count, targets, counts } = samplesOf(patches);
  const bands = targets.length / count;
  const sums = new Array<number>(bands).fill(0);
  let total = 0;
  for (let n = 0; n < count; n++) {
    if (counts?.[n] === 0) continue;
    total++;
    for (let b = 0; b < bands; b++) sums[b] += targets[n * bands + b];
  }
  return sums.map((sum) => sum / total);
}

/** A straight line: output o = bias[o] + sum of weights[o][band] * input[band]. */
export interface LinearModel {
  weights: number[][];
  bias: number[];
}

/** What ridge regression needs of samples; of several sets it is the sum of theirs. */
export interface SufficientStatistics {
  count: number;
  /** Of the features, [band], and of their products, [band][band]. */
  x: number[];
  xx: number[][];
  /** Of the targets, [output], and of their products with the features, [output][band]. */
  y: number[];
  xy: number[][];
}

/** Of all that counts. */
export function sufficientStatistics(train: Patches): SufficientStatistics {
  const { count: samples, features, targets, counts } = samplesOf(train);
  const bands = train.inputBands;
  const outputs = targets.length / samples;
  const x = new Float64Array(bands);
  const xx = new Float64Array(bands * bands);
  const y = new Float64Array(outputs);
  const xy = new Float64Array(outputs * bands);
  let count = 0;
  for (let n = 0; n < samples; n++) {
    if (counts?.[n] === 0) continue;
    count++;
    for (let a = 0; a < bands; a++) {
      const value = features[n * bands + a];
      x[a] += value;
      for (let b = 0; b <= a; b++) xx[a * bands + b] += value * features[n * bands + b];
      for (let t = 0; t < outputs; t++) xy[t * bands + a] += value * targets[n * outputs + t];
    }
    for (let t = 0; t < outputs; t++) y[t] += targets[n * outputs + t];
  }
  const rows = (table: Float64Array) =>
    Array.from({ length: table.length / bands }, (_, row) => [
      ...table.subarray(row * bands, (row + 1) * bands),
    ]);
  for (let a = 0; a < bands; a++) for (let b = 0; b < a; b++) xx[b * bands + a] = xx[a * bands + b];
  return { count, x: [...x], xx: rows(xx), y: [...y], xy: rows(xy) };
}

/** The sums for the line of a model; for the removal of cloud those of cloudy pixels alone, if there are some. */
export function initialFitStatistics(train: Patches): SufficientStatistics {
  const { targetMask, cloud } = train;
  const cloudy = targetMask && cloud?.map((one, i) => one * targetMask[i]);
  return sufficientStatistics(cloudy?.includes(1) ? { ...train, targetMask: cloudy } : train);
}

export function addSufficientStatistics(
  a: SufficientStatistics,
  b: SufficientStatistics,
): SufficientStatistics {
  const add = (one: number[], other: number[]) => one.map((value, i) => value + other[i]);
  return {
    count: a.count + b.count,
    x: add(a.x, b.x),
    xx: a.xx.map((row, i) => add(row, b.xx[i])),
    y: add(a.y, b.y),
    xy: a.xy.map((row, i) => add(row, b.xy[i])),
  };
}

/** A variance below this part of the squared mean is rounding. */
const VARIANCE_EPSILON = 1e-12;

/**
 * Ridge regression in closed form: weights w solve (Z'Z + lambda I) w = Z'(y - mean y), with Z the features less their
 * training mean over their training standard deviation.
 */
export function ridge({ count, x, xx, y, xy }: SufficientStatistics, lambda = RIDGE_LAMBDA): LinearModel {
  const centre = x.map((sum) => sum / count);
  const spread = centre.map((middle, f) => {
    const variance = xx[f][f] / count - middle ** 2;
    // A constant feature says nothing; any spread but zero keeps its weight at zero.
    return variance > VARIANCE_EPSILON * middle ** 2 ? Math.sqrt(variance) : 1;
  });
  const gram = xx.map((row, a) =>
    row.map(
      (products, b) =>
        (products - count * centre[a] * centre[b]) / (spread[a] * spread[b]) + (a === b ? lambda : 0),
    ),
  );
  const weights = xy.map((row, t) => {
    const moments = row.map((products, f) => (products - centre[f] * y[t]) / spread[f]);
    return solveByCholesky(gram, moments).map((weight, f) => weight / spread[f]);
  });
  const bias = y.map((sum, t) => weights[t].reduce((left, w, f) => left - w * centre[f], sum / count));
  return { weights, bias };
}

export function linearPredictor({ weights, bias }: LinearModel): Predictor {
  return (patches) => {
    const { features } = samplesOf(patches);
    const width = patches.inputBands;
    return patches.targets.map((_, i) => {
      const first = Math.floor(i / bias.length) * width;
      const output = i % bias.length;
      return weights[output].reduce((sum, weight, f) => sum + weight * features[first + f], bias[output]);
    });
  };
}

interface Samples {
  count: number;
  /** [count, input bands] */
  features: Float32Array;
  /** [count, target bands] */
  targets: Float32Array;
  counts?: Float32Array;
}

/** A sample is a pixel where the targets are maps, else a patch by its band means. */
function samplesOf(patches: Patches): Samples {
  const { count, size, inputs, targets, targetMask } = patches;
  const pixels = size * size;
  return targetMask
    ? { count: count * pixels, features: inputs, targets, counts: targetMask }
    : { count, features: bandMeans(patches), targets };
}

function bandMeans({ count, size, inputBands, inputs }: Patches): Float32Array {
  const pixels = size * size;
  return Float32Array.from({ length: count * inputBands }, (_, i) => {
    const first = Math.floor(i / inputBands) * pixels * inputBands + (i % inputBands);
    let sum = 0;
    for (let p = 0; p < pixels; p++) sum += inputs[first + p * inputBands];
    return sum / pixels;
  });
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
