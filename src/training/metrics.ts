/** How far predictions are from the truth. */
import type { MultiScale } from './image-metrics.js';

export interface Metrics {
  /** Mean squared error. */
  mse: number;
  /** Coefficient of determination: 1 is perfect, 0 no better than the truth's own mean, negative worse. */
  r2: number;
  /** Of images: means over patches, in decibels and from -1 to 1 (see image-metrics.ts). */
  psnr?: number;
  ssim?: number;
  /** Small patches have fewer than five scales. */
  msSsim?: MultiScale;
}

export interface EpochLoss {
  /** From 1. */
  epoch: number;
  /** Mean over the epoch's batches, while the weights moved. */
  train: number;
  /** Mean squared error. */
  validation: number;
  /** Mean squared error on the selection patches, by which the best epoch is chosen. Absent without such patches. */
  selection?: number;
}

/** Pairs of true and predicted values, by index. */
export interface Predictions {
  truth: Float32Array;
  predicted: Float32Array;
}

/** Metrics of at least one pair. A truth without variance has R2 1 where it is met exactly, else 0, as scikit-learn has it. */
export function metricsOf({ truth, predicted }: Predictions): Metrics {
  const mean = truth.reduce((sum, value) => sum + value, 0) / truth.length;
  let residual = 0;
  let total = 0;
  for (let i = 0; i < truth.length; i++) {
    residual += (truth[i] - predicted[i]) ** 2;
    total += (truth[i] - mean) ** 2;
  }
  return { mse: residual / truth.length, r2: scoreOf(residual, total) };
}

/** What the pooled score needs of the truth of a place. */
export interface Spread {
  count: number;
  mean: number;
  /** Squared deviations from the mean, added up. */
  squares: number;
}

export function spreadOf(truth: ArrayLike<number>): Spread {
  const values = Float64Array.from(truth);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { count: values.length, mean, squares };
}

/**
 * Several places taken as one set, from the truth of each and the mean squared error made there: R2 is against the mean over
 * all of them.
 */
export function pooledScore(truths: Spread[], mses: number[]): Metrics {
  const { count, squares } = pooledSpread(truths);
  const residual = truths.reduce((sum, truth, i) => sum + truth.count * mses[i], 0);
  return { mse: residual / count, r2: scoreOf(residual, squares) };
}

/** The truth of several places taken as one set. */
export function pooledSpread(truths: Spread[]): Spread {
  const sum = (of: (truth: Spread) => number) => truths.reduce((total, truth) => total + of(truth), 0);
  const count = sum((truth) => truth.count);
  const mean = sum((truth) => truth.count * truth.mean) / count;
  // The squares within the places, and those between them.
  return { count, mean, squares: sum((truth) => truth.squares + truth.count * (truth.mean - mean) ** 2) };
}

function scoreOf(residual: number, total: number): number {
  return total > 0 ? 1 - residual / total : residual === 0 ? 1 : 0;
}
