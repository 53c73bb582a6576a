/**
 * Scores of predictions: regression metrics, PSNR, SSIM and MS-SSIM, baselines, and scores of entire tiles. Most functions depend only on
 * true and predicted values. Imports files of a folder above, the folders `data`, `inference`, `models` (types) and `patches` and the parts
 * `engines` (types) and `grid` (types).
 */

export {
  evaluateBaselines,
  evaluatePredictions,
  evaluateValidation,
  maskedPairs,
  meanSquaredError,
} from './evaluate-predictions.js';
export { type Baselines, initialFitStatistics, pooledBaselines } from './evaluation-baselines.js';
export { type DateError, dateErrors } from './evaluation-date-errors.js';
export { type DisplayRange, displayRange } from './evaluation-display-range.js';
export type { ImageScores } from './evaluation-image-scores.js';
export {
  type EpochLosses,
  type Metrics,
  type ModelMetrics,
  type Predictions,
  pooledScore,
  pooledTargetStatistics,
  pooledTile,
  regressionMetrics,
  type TargetStatistics,
  type TileScore,
  targetStatistics,
} from './evaluation-regression-metrics.js';
export { imagesToScore, scoreTile, type TileImages } from './evaluation-tile-scores.js';
