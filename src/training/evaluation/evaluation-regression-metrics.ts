/** Regression metrics of predictions, and their combination over cells. */
import { type ImageScores, meanScores } from './evaluation-image-scores.js';

/**
 * Image metrics are those of patches; absent if a patch has one value. If they are present without `images`, an older version computed
 * them: each band as a separate image, with a range of 1 (2 for an index) and without 8-bit rendering.
 */
export interface Metrics extends Partial<ImageScores> {
  /** Mean squared error. */
  mse: number;
  /** Coefficient of determination: 1 is perfect, 0 is no better than the mean of the true values, negative is worse. */
  r2: number;
}

/**
 * Scores of entire tiles, which are large enough for the five scales of multi-scale SSIM (176 pixels); the validation side is too narrow.
 * A tile includes the ground that the model was trained on: on other dates, or on the same date if there is only one.
 */
export interface TileScore extends ImageScores {
  /** Scored dates, RFC 3339, the earliest first. */
  dates: string[];
}

export interface ModelMetrics {
  train: Metrics;
  validation: Metrics;
  /** Absent if a patch has one value. */
  tile?: TileScore;
}

export interface EpochLosses {
  /** From 1. */
  epoch: number;
  /** Mean over the batches of the epoch, during which the weights changed. */
  train: number;
  /** Mean squared error. */
  validation: number;
  /** Mean squared error on the selection patches, which choose the best epoch. Absent without such patches. */
  selection?: number;
}

/** Pairs of true and predicted values, by index. */
export interface Predictions {
  truth: Float32Array;
  predicted: Float32Array;
}

/**
 * Returns the metrics of at least one pair. If the true values have no variance, R2 is 1 for an exact prediction and 0 otherwise, as in
 * scikit-learn.
 */
export function regressionMetrics({ truth, predicted }: Predictions): Metrics {
  const residual = truth.reduce((sum, value, i) => sum + (value - predicted[i]) ** 2, 0);
  return { mse: residual / truth.length, r2: rSquared(residual, targetStatistics(truth).squares) };
}

/** Statistics of the true values of a cell, from which pooled scores are computed. */
export interface TargetStatistics {
  count: number;
  mean: number;
  /** Sum of squared deviations from the mean. */
  squares: number;
}

export function targetStatistics(truth: ArrayLike<number>): TargetStatistics {
  const values = Float64Array.from(truth);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { count: values.length, mean, squares };
}

/**
 * Combines the scores of several cells as if their values were one set. R2 is relative to the mean over all cells. Image metrics are
 * means over all images; they are absent if any cell has them in the definition of older versions.
 */
export function pooledScore(truths: TargetStatistics[], scores: Metrics[]): Metrics {
  const { count, squares } = pooledTargetStatistics(truths);
  const residual = truths.reduce((sum, truth, i) => sum + truth.count * scores[i].mse, 0);
  return { mse: residual / count, r2: rSquared(residual, squares), ...pooledImages(scores) };
}

function pooledImages(scores: Metrics[]): ImageScores | undefined {
  const isOlder = ({ images, psnr, ssim, msSsim }: Metrics) =>
    !images && (psnr ?? ssim ?? msSsim) !== undefined;
  const known = scores.filter((one): one is Metrics & ImageScores => one.images !== undefined);
  return known.length === 0 || scores.some(isOlder) ? undefined : meanScores(known);
}

/** Combines the tile scores of several cells; undefined if no cell has any. */
export function pooledTile(cells: { metrics: ModelMetrics }[]): TileScore | undefined {
  const tiles = cells.flatMap(({ metrics }) => metrics.tile ?? []);
  if (tiles.length === 0) return undefined;
  return { ...meanScores(tiles), dates: [...new Set(tiles.flatMap(({ dates }) => dates))].sort() };
}

/** Combines the statistics of several cells as if their values were one set. */
export function pooledTargetStatistics(truths: TargetStatistics[]): TargetStatistics {
  const sum = (of: (truth: TargetStatistics) => number) =>
    truths.reduce((total, truth) => total + of(truth), 0);
  const count = sum((truth) => truth.count);
  const mean = sum((truth) => truth.count * truth.mean) / count;
  // Sums of squares within and between the cells.
  return { count, mean, squares: sum((truth) => truth.squares + truth.count * (truth.mean - mean) ** 2) };
}

function rSquared(residual: number, total: number): number {
  return total > 0 ? 1 - residual / total : residual === 0 ? 1 : 0;
}
