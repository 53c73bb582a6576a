/** Baselines that a model must beat to be useful: the training mean, and ridge regression. */
import type { Patches } from '../patches/index.js';
import {
  type LinearModel,
  type Samples,
  type SufficientStatistics,
  sampleStatistics,
} from '../ridge-regression.js';
import { type Metrics, pooledScore, type TargetStatistics } from './evaluation-regression-metrics.js';

export interface Baselines {
  mean: Metrics;
  /** Ridge regression on the band means of a patch, or on the bands of each pixel if the target is a map. */
  linear: Metrics;
  /** For cloud removal: the cloudy date as it is. */
  unchanged?: Metrics;
  /** For cloud removal: at each pixel the clear value that is nearest in time, and the median of the clear values. */
  nearest?: Metrics;
  median?: Metrics;
}

/** Combines the scores of several cells. Baselines that a cell lacks are absent. */
export function pooledBaselines(truths: TargetStatistics[], cells: { baseline: Baselines }[]): Baselines {
  const names = ['mean', 'linear', 'unchanged', 'nearest', 'median'] as const;
  const known = names.filter((name) => cells.every(({ baseline }) => baseline[name]));
  const pooled = (name: keyof Baselines) =>
    pooledScore(
      truths,
      cells.map(({ baseline }) => baseline[name]!),
    );
  return Object.fromEntries(known.map((name) => [name, pooled(name)])) as unknown as Baselines;
}

/** Predicts a set of patches, in the shape of its targets. */
type Predictor = (patches: Patches) => Float32Array;

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
