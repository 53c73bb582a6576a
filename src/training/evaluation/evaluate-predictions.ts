/** Scores the predictions of models and of baselines on patches. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { predictPatches } from '../inference/index.js';
import type { TargetSpec } from '../models/index.js';
import { filledOnly, type Patches, type TrainValidationPatches } from '../patches/index.js';
import { ridge } from '../ridge-regression.js';
import {
  type Baselines,
  linearPredictor,
  sufficientStatistics,
  trainingMean,
} from './evaluation-baselines.js';
import { type DisplayRange, displayRange } from './evaluation-display-range.js';
import type { ImagePair } from './evaluation-image-metrics.js';
import { imageScores, meanScores } from './evaluation-image-scores.js';
import { type Metrics, type Predictions, regressionMetrics } from './evaluation-regression-metrics.js';

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

/**
 * Scores the baselines on the validation patches. The mean and the linear baseline (ridge regression) are fitted to the training patches.
 * For the target `clear`, it also scores three baselines without any fitting: the unchanged cloudy values, the nearest clear values and
 * the medians.
 */
export function evaluateBaselines(
  target: TargetSpec,
  { train, validation }: Pick<TrainValidationPatches, 'train' | 'validation'>,
  range: DisplayRange | undefined,
): Baselines {
  const score = (predicted: Float32Array) => evaluatePredictions(validation, predicted, range);
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
