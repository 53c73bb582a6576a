/** How far predictions are from the truth. */
import { type ImageScores, meanScores } from './image-scores.js';

/**
 * Measures of images are those of patches, and absent if a patch has one value. If they are there without `images`, an older version
 * measured them: of each band as an image of its own, with a range of 1 (2 for an index) and no 8-bit rendering.
 */
export interface Metrics extends Partial<ImageScores> {
  /** Mean squared error. */
  mse: number;
  /** Coefficient of determination: 1 is perfect, 0 no better than the truth's own mean, negative worse. */
  r2: number;
}

/**
 * Scores of whole tiles, with room for the five scales of multi-scale SSIM (176 pixels), which the validation side is too narrow for. A tile
 * includes the ground that the model was trained on: at other dates, or at the same one if there is only one.
 */
export interface TileScore extends ImageScores {
  /** Those that go in, RFC 3339, the earliest first. */
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
export function regressionMetrics({ truth, predicted }: Predictions): Metrics {
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
export interface TargetStatistics {
  count: number;
  mean: number;
  /** Squared deviations from the mean, added up. */
  squares: number;
}

export function targetStatistics(truth: ArrayLike<number>): TargetStatistics {
  const values = Float64Array.from(truth);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { count: values.length, mean, squares };
}

/**
 * Several places taken as one set, from the truth of each and its scores: R2 is against the mean over all of them. Measures of images are
 * means over all images; they are absent if those of some place are by the definition of older versions.
 */
export function pooledScore(truths: TargetStatistics[], scores: Metrics[]): Metrics {
  const { count, squares } = pooledTargetStatistics(truths);
  const residual = truths.reduce((sum, truth, i) => sum + truth.count * scores[i].mse, 0);
  return { mse: residual / count, r2: scoreOf(residual, squares), ...pooledImages(scores) };
}

function pooledImages(scores: Metrics[]): ImageScores | undefined {
  const ofOlder = ({ images, psnr, ssim, msSsim }: Metrics) =>
    !images && (psnr ?? ssim ?? msSsim) !== undefined;
  const known = scores.filter((one): one is Metrics & ImageScores => one.images !== undefined);
  return known.length === 0 || scores.some(ofOlder) ? undefined : meanScores(known);
}

/** Whole tiles of several places; undefined if none has scores. */
export function pooledTile(places: { metrics: ModelMetrics }[]): TileScore | undefined {
  const tiles = places.flatMap(({ metrics }) => metrics.tile ?? []);
  if (tiles.length === 0) return undefined;
  return { ...meanScores(tiles), dates: [...new Set(tiles.flatMap(({ dates }) => dates))].sort() };
}

/** The truth of several places taken as one set. */
export function pooledTargetStatistics(truths: TargetStatistics[]): TargetStatistics {
  const sum = (of: (truth: TargetStatistics) => number) =>
    truths.reduce((total, truth) => total + of(truth), 0);
  const count = sum((truth) => truth.count);
  const mean = sum((truth) => truth.count * truth.mean) / count;
  // The squares within the places, and those between them.
  return { count, mean, squares: sum((truth) => truth.squares + truth.count * (truth.mean - mean) ** 2) };
}

function scoreOf(residual: number, total: number): number {
  return total > 0 ? 1 - residual / total : residual === 0 ? 1 : 0;
}
