/** Scores the predictions of models and of baselines on patches by regression metrics, which can be combined over cells. */

import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import { bootstrapInterval, type Interval } from '../utils/bootstrap.js';
import { bounded, predictPatches } from './batches.js';
import {
  type DisplayRange,
  displayRange,
  type ImagePair,
  type ImageScores,
  imageScores,
  meanScores,
} from './image-metrics.js';
import type { TargetSpec } from './models/spec.js';
import { filledOnly, type Patches, type TrainValidationPatches } from './patches.js';
import {
  addSufficientStatistics,
  type LinearModel,
  ridge,
  type Samples,
  type SufficientStatistics,
  sampleStatistics,
} from './ridge-regression.js';

/**
 * Image metrics are those of patches; absent if a patch has one value. If they are present without `images`, an older version computed
 * them: each band as a separate image, with a range of 1 (2 for an index) and without 8-bit rendering.
 */
export interface Metrics extends Partial<ImageScores> {
  /** Mean squared error. */
  mse: number;
  /** Coefficient of determination: 1 is perfect, 0 is as good as the mean of the true values, negative is worse. */
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
  /** Mean squared error; of several groups, the mean of theirs. */
  validation: number;
  /** Mean squared error on the selection patches, which choose the best epoch. Absent without such patches. */
  selection?: number;
  /** Mean squared error of each group of validation patches, if there are several. */
  groups?: number[];
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

export function rSquared(residual: number, total: number): number {
  return total > 0 ? 1 - residual / total : residual === 0 ? 1 : 0;
}

/** Baselines that a model must beat to be useful: the training mean, and ridge regression. */
export interface Baselines {
  mean: Metrics;
  /** Ridge regression on the band means of a patch, or on the bands of each pixel if the target is a map. */
  linear: Metrics;
  /** With a history: the mean of the target on the other dates. */
  history?: Metrics;
  /** For cloud removal: the cloudy date as it is. */
  unchanged?: Metrics;
  /** The value that is nearest in time: of the target with a history, of each band for cloud removal. */
  nearest?: Metrics;
  /** For cloud removal: the median of the clear values. */
  median?: Metrics;
}

/** Combines the scores of several cells. Baselines that a cell lacks are absent. */
export function pooledBaselines(truths: TargetStatistics[], cells: { baseline: Baselines }[]): Baselines {
  const names = ['mean', 'history', 'linear', 'unchanged', 'nearest', 'median'] as const;
  const known = names.filter((name) => cells.every(({ baseline }) => baseline[name]));
  const pooled = (name: keyof Baselines) =>
    pooledScore(
      truths,
      cells.map(({ baseline }) => baseline[name]!),
    );
  return Object.fromEntries(known.map((name) => [name, pooled(name)])) as unknown as Baselines;
}

/** Predicts a set of patches, in the shape of its targets. */
export type Predictor = (patches: Patches) => Float32Array;

/** The predictors of the simple baselines of a place that has a history. */
export type HistoryBaselines = Record<'mean' | 'history' | 'nearest' | 'linear', Predictor>;

/** Predicts the mean of each target band over all training samples that count. */
export function trainingMean(train: Patches): Predictor {
  const { count, targets, counts } = samplesOf(train);
  const bands = targets.length / count;
  const sums = new Array<number>(bands).fill(0);
  let total = 0;
  for (let n = 0; n < count; n++) {
    if (counts?.[n] === 0) continue;
    total++;
    for (let b = 0; b < bands; b++) sums[b] += targets[n * bands + b];
  }
  const mean = sums.map((sum) => sum / total);
  return (patches) => patches.targets.map((_, i) => mean[i % bands]);
}

export const sufficientStatistics = (train: Patches): SufficientStatistics =>
  sampleStatistics(samplesOf(train));

/** Sums for the linear layer of a fresh model. For cloud removal only cloudy pixels count, if there are any. */
export function initialFitStatistics(train: Patches): SufficientStatistics {
  const { targetMask, cloud } = train;
  const cloudy = targetMask && cloud?.map((one, i) => one * targetMask[i]);
  return sufficientStatistics(cloudy?.includes(1) ? { ...train, targetMask: cloudy } : train);
}

/** `fallback`: what predicts samples in which the plane `has` is 0. */
export function linearPredictor(
  model: LinearModel,
  { has, fallback }: { has?: number; fallback?: LinearModel } = {},
): Predictor {
  return (patches) => {
    const { features } = samplesOf(patches);
    const width = patches.inputBands;
    return bounded(
      patches,
      patches.targets.map((_, i) => {
        const first = Math.floor(i / model.bias.length) * width;
        const output = i % model.bias.length;
        const { weights, bias } = fallback && features[first + has!] === 0 ? fallback : model;
        return weights[output].reduce((sum, weight, f) => sum + weight * features[first + f], bias[output]);
      }),
    );
  };
}

/** Sums of the samples that have a history, where the plane `has` is not 0, and of all samples. */
export function historyStatistics(
  train: Patches,
  has: number,
): Record<'withHistory' | 'all', SufficientStatistics> {
  const samples = samplesOf(train);
  const { count, features, counts } = samples;
  const sumOf = (isKnown: boolean) =>
    sampleStatistics({
      ...samples,
      counts: Uint8Array.from({ length: count }, (_, n) =>
        (features[n * train.inputBands + has] !== 0) === isKnown && counts?.[n] !== 0 ? 1 : 0,
      ),
    });
  const withHistory = sumOf(true);
  return { withHistory, all: addSufficientStatistics(withHistory, sumOf(false)) };
}

/** A sample is a pixel if the targets are maps; otherwise a patch, represented by its band means. */
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

/** Scores predictions, which have the shape of `patches.targets`. If `range` is given, the result includes image metrics. */
export function evaluatePredictions(
  patches: Patches,
  predicted: Float32Array,
  range: DisplayRange | undefined,
): Metrics {
  const basic = regressionMetrics(maskedPairs(patches, predicted));
  if (!range) return basic;
  const scores = imagesOf(patches, predicted).map((image) => imageScores(image, range));
  return { ...basic, ...meanScores(scores) };
}

/** Returns the mean squared error of a model over all target values that are not masked. */
export function meanSquaredError(tf: Tf, model: LayersModel, patches: Patches): number {
  return regressionMetrics(maskedPairs(patches, predictPatches(tf, model, patches))).mse;
}

/** Scores a model on the validation patches, like `metrics.validation` of a model card. */
export function evaluateValidation(
  tf: Tf,
  model: LayersModel,
  { train, validation }: Pick<TrainValidationPatches, 'train' | 'validation'>,
): Metrics {
  return evaluatePredictions(validation, predictPatches(tf, model, validation), displayRange(train));
}

/** Errors on the selection patches. Versions and parents are chosen by them, so that the validation patches only report. */
export interface SelectionScore {
  /** Mean squared errors of the model, and of the training mean. */
  mse: number;
  mean: number;
  /** Statistics of the true values, which identify the patches. */
  spread: TargetStatistics;
}

export function evaluateSelection(
  tf: Tf,
  model: LayersModel,
  { train, selection }: Pick<TrainValidationPatches, 'train'> & { selection: Patches },
): SelectionScore {
  const pairs = (predicted: Float32Array) => maskedPairs(selection, predicted);
  const predicted = pairs(predictPatches(tf, model, selection));
  return {
    mse: regressionMetrics(predicted).mse,
    mean: regressionMetrics(pairs(trainingMean(filledOnly(train))(selection))).mse,
    spread: targetStatistics(predicted.truth),
  };
}

/** Combines the scores of several cells as if their values were one set. Undefined without any. */
export function pooledSelection(scores: SelectionScore[]): SelectionScore | undefined {
  if (scores.length === 0) return undefined;
  const spread = pooledTargetStatistics(scores.map((score) => score.spread));
  const error = (name: 'mse' | 'mean') =>
    scores.reduce((sum, score) => sum + score.spread.count * score[name], 0) / spread.count;
  return { mse: error('mse'), mean: error('mean'), spread };
}

/**
 * Scores the baselines on the validation patches. The mean and the linear baseline (ridge regression) are fitted to the training patches.
 * For the target `clear`, it also scores three baselines without any fitting: the unchanged cloudy values, the nearest clear values and
 * the medians.
 */
export function evaluateBaselines(
  target: TargetSpec,
  { train, validation }: Pick<TrainValidationPatches, 'train' | 'validation'>,
  range: DisplayRange | undefined,
  ofHistory?: HistoryBaselines,
): Baselines {
  const score = (predicted: Float32Array) => evaluatePredictions(validation, predicted, range);
  if (ofHistory) {
    const [mean, history, nearest, linear] = (['mean', 'history', 'nearest', 'linear'] as const).map((name) =>
      score(ofHistory[name](validation)),
    );
    return { mean: mean!, history, nearest, linear: linear! };
  }
  const known = filledOnly(train);
  const fitted = {
    mean: score(trainingMean(known)(validation)),
    linear: score(linearPredictor(ridge(sufficientStatistics(known)))(validation)),
  };
  if (target.kind !== 'clear') return fitted;
  const [nearest, median] = [1, 2].map((source) => score(bandsFrom(validation, source)));
  return { ...fitted, unchanged: score(validation.cloudy!), nearest, median };
}

/** Selects the nearest clear values (`source` 1) or the medians (`source` 2) from the inputs of cloud removal (`cloudInputs`). */
function bandsFrom({ inputs, inputBands, targetBands }: Patches, source: number): Float32Array {
  const pixels = inputs.length / inputBands;
  return Float32Array.from({ length: pixels * targetBands }, (_, i) => {
    const pixel = Math.floor(i / targetBands);
    return inputs[pixel * inputBands + source * targetBands + (i % targetBands)];
  });
}

export interface SquaredErrors {
  squares: number;
  values: number;
}

/** Returns the sum of squared errors over all values of these sets that count, and the number of values. */
export function squaredErrors(sets: readonly Patches[], predict: Predictor): SquaredErrors {
  let squares = 0;
  let values = 0;
  for (const set of sets) {
    const { truth, predicted } = maskedPairs(set, predict(set));
    for (let i = 0; i < truth.length; i++) squares += (truth[i]! - predicted[i]!) ** 2;
    values += truth.length;
  }
  return { squares, values };
}

/** Returns the mean squared error over all values of these sets that count. */
export function meanError(sets: readonly Patches[], predict: Predictor): number {
  const { squares, values } = squaredErrors(sets, predict);
  return squares / values;
}

/** How much of the error of the training mean a model saves: 1 - error / error of the mean. */
export interface Skill {
  value: number;
  /** 95 % interval over the patches, or over the places of a model of many. Absent if these are fewer than six. */
  interval?: Interval;
}

/** The mean of a constant target is exact. */
export const skillValue = (model: number, mean: number): number =>
  mean > 0 ? 1 - model / mean : model > 0 ? -1 : 0;

/** The skill from the squared errors of a model and of the mean, by unit. Both count the same values. */
export function skillOf(units: readonly { model: number; mean: number }[]): Skill {
  const value = (weights: (unit: number) => number) => {
    let model = 0;
    let mean = 0;
    for (const [i, unit] of units.entries()) {
      model += weights(i) * unit.model;
      mean += weights(i) * unit.mean;
    }
    return skillValue(model, mean);
  };
  const interval = bootstrapInterval([units.length], (drawn) => value((i) => drawn[i]!));
  return { value: value(() => 1), ...(interval && { interval }) };
}

/** The squared errors of predictions of patches, one for each patch. */
export function errorsByPatch(set: Patches, predicted: Float32Array): number[] {
  const { count, targets, targetMask, targetBands } = set;
  const values = targets.length / count;
  const errors = new Array<number>(count).fill(0);
  for (let i = 0; i < targets.length; i++) {
    if (targetMask && targetMask[Math.floor(i / targetBands)] !== 1) continue;
    errors[Math.floor(i / values)]! += (targets[i]! - predicted[i]!) ** 2;
  }
  return errors;
}

/** Returns the true and the predicted values without those that the target mask excludes. */
export function maskedPairs(
  { targets, targetMask, targetBands }: Patches,
  predicted: Float32Array,
): Predictions {
  if (!targetMask) return { truth: targets, predicted };
  const counts = (_: number, i: number) => targetMask[Math.floor(i / targetBands)] === 1;
  return { truth: targets.filter(counts), predicted: predicted.filter(counts) };
}

/** Converts each patch to a pair of images: the targets and the predictions. */
function imagesOf(
  { count, size, targetBands, targets, targetMask }: Patches,
  predicted: Float32Array,
): ImagePair[] {
  const pixels = size * size;
  return Array.from({ length: count }, (_, patch) => {
    const planes = (values: Float32Array) =>
      Array.from({ length: targetBands }, (_, b) => {
        const plane = new Float32Array(pixels);
        for (let p = 0; p < pixels; p++) plane[p] = values[(patch * pixels + p) * targetBands + b];
        return plane;
      });
    return {
      width: size,
      height: size,
      truth: planes(targets),
      predicted: planes(predicted),
      counts: targetMask && Uint8Array.from(targetMask.subarray(patch * pixels, (patch + 1) * pixels)),
    };
  });
}
