/** How far predictions are from the truth. */

export interface Metrics {
  /** Mean squared error. */
  mse: number;
  /** Coefficient of determination: 1 is perfect, 0 no better than the truth's own mean, negative worse. */
  r2: number;
}

/** Pairs of true and predicted values, by index. */
export interface Predictions {
  truth: Float32Array;
  predicted: Float32Array;
}

/** Metrics of at least one pair. A truth without variance has R2 1 where it is met exactly, else 0, as scikit-learn has it. */
export function metricsOf({ truth, predicted }: Predictions): Metrics {
  const mean = meanOf(truth);
  let residual = 0;
  let total = 0;
  for (let i = 0; i < truth.length; i++) {
    residual += (truth[i] - predicted[i]) ** 2;
    total += (truth[i] - mean) ** 2;
  }
  return { mse: residual / truth.length, r2: scoreOf(residual, total) };
}

/**
 * Several places taken as one set, from the truth of each and the mean squared error made there: R2 is against the mean over
 * all of them.
 */
export function pooledScore(truths: Float32Array[], mses: number[]): Metrics {
  const all = joined(truths);
  const residual = truths.reduce((sum, truth, i) => sum + truth.length * mses[i], 0);
  const mean = meanOf(all);
  const total = all.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mse: residual / all.length, r2: scoreOf(residual, total) };
}

function scoreOf(residual: number, total: number): number {
  return total > 0 ? 1 - residual / total : residual === 0 ? 1 : 0;
}

export function meanOf(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function joined(parts: Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
