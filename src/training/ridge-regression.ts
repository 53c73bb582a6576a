/** Ridge regression in closed form, from sums over the samples. */

/** Penalty on the squared weights of standardised features, without the intercept (scikit-learn's `alpha`). */
const RIDGE_LAMBDA = 1;
/** A variance below this fraction of the squared mean is rounding error. */
const VARIANCE_EPSILON = 1e-12;

/** Linear function: output o = bias[o] + sum of weights[o][band] * input[band]. */
export interface LinearModel {
  weights: number[][];
  bias: number[];
}

/** Sums over samples from which `ridge` fits. The sums of several sets are the sum of theirs. */
export interface SufficientStatistics {
  count: number;
  /** Sums of the features, [band], and of their products, [band][band]. */
  x: number[];
  xx: number[][];
  /** Sums of the targets, [output], and of their products with the features, [output][band]. */
  y: number[];
  xy: number[][];
  /** Sums of the squared targets, [output]. */
  yy: number[];
}

export interface Samples {
  count: number;
  /** [count, features] */
  features: Float32Array;
  /** [count, outputs] */
  targets: Float32Array | Float64Array;
  /** 0 for samples that do not count. Default: all count. */
  counts?: Float32Array | Uint8Array;
}

/** Sums over all samples that count. */
export function sampleStatistics({
  count: samples,
  features,
  targets,
  counts,
}: Samples): SufficientStatistics {
  const bands = features.length / samples;
  const outputs = targets.length / samples;
  const width = bands + outputs;
  // Features and targets of a sample, and the sums of them and of their products below the diagonal.
  const sample = new Float64Array(width);
  const sums = new Float64Array(width);
  const products = new Float64Array(width * width);
  let count = 0;
  for (let n = 0; n < samples; n++) {
    if (counts?.[n] === 0) continue;
    count++;
    for (let f = 0; f < bands; f++) sample[f] = features[n * bands + f]!;
    for (let t = 0; t < outputs; t++) sample[bands + t] = targets[n * outputs + t]!;
    for (let a = 0; a < width; a++) {
      const value = sample[a]!;
      sums[a]! += value;
      const row = a * width;
      for (let b = 0; b <= a; b++) products[row + b]! += value * sample[b]!;
    }
  }
  const product = (a: number, b: number) => products[Math.max(a, b) * width + Math.min(a, b)]!;
  const all = Array.from({ length: bands }, (_, f) => f);
  const targetsOf = Array.from({ length: outputs }, (_, t) => bands + t);
  const rows = (of: number[]) => of.map((a) => all.map((b) => product(a, b)));
  return {
    count,
    x: all.map((f) => sums[f]!),
    xx: rows(all),
    y: targetsOf.map((t) => sums[t]!),
    xy: rows(targetsOf),
    yy: targetsOf.map((t) => product(t, t)),
  };
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
    yy: add(a.yy, b.yy),
  };
}

/**
 * Weights w that solve (Z'Z + lambda I) (w - w0) = Z'(y - mean y - Z w0). Z are the features minus their training mean, divided by their
 * training standard deviation. w0: `towards`, the weights to which a large lambda leads, by default 0.
 */
export function ridge(
  { count, x, xx, y, xy }: SufficientStatistics,
  lambda = RIDGE_LAMBDA,
  towards: number[] = x.map(() => 0),
): LinearModel {
  const centre = x.map((sum) => sum / count);
  const spread = centre.map((middle, f) => {
    const variance = xx[f][f] / count - middle ** 2;
    // A constant feature has no information; any non-zero deviation keeps its weight at zero.
    return variance > VARIANCE_EPSILON * middle ** 2 ? Math.sqrt(variance) : 1;
  });
  const gram = xx.map((row, a) =>
    row.map(
      (products, b) =>
        (products - count * centre[a] * centre[b]) / (spread[a] * spread[b]) + (a === b ? lambda : 0),
    ),
  );
  const weights = xy.map((row, t) => {
    const moments = row.map(
      (products, f) => (products - centre[f] * y[t]) / spread[f] + lambda * spread[f] * towards[f],
    );
    return solveByCholesky(gram, moments).map((weight, f) => weight / spread[f]);
  });
  const bias = y.map((sum, t) => weights[t].reduce((left, w, f) => left - w * centre[f], sum / count));
  return { weights, bias };
}

/** Returns the sums of some of the features. */
export function pickFeatures(
  { x, xx, xy, ...rest }: SufficientStatistics,
  features: readonly number[],
): SufficientStatistics {
  const pick = (row: number[]) => features.map((f) => row[f]);
  return { ...rest, x: pick(x), xx: features.map((f) => pick(xx[f])), xy: xy.map(pick) };
}

/** Mean squared error of a linear model over the samples of these sums, and over all outputs. */
export function linearError({ count, x, xx, y, xy, yy }: SufficientStatistics, model: LinearModel): number {
  const errors = model.weights.map((w, t) => {
    const b = model.bias[t];
    const dot = (row: number[]) => row.reduce((sum, value, f) => sum + value * w[f], 0);
    const squares = w.reduce((sum, weight, f) => sum + weight * dot(xx[f]), 0);
    return (yy[t] - 2 * (dot(xy[t]) + b * y[t]) + squares + 2 * b * dot(x) + b * b * count) / count;
  });
  // Differences of large sums may end just below 0.
  return Math.max(0, errors.reduce((sum, error) => sum + error, 0) / errors.length);
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
