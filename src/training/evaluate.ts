/** How good predictions are, by the measures of a model's kind. */
import { type Baselines, linearPredictor, lineSums, ridge, trainingMean } from './baselines.js';
import { type ImagePair, msSsim, psnr, ssim } from './image-metrics.js';
import { type Metrics, metricsOf, type Predictions } from './metrics.js';
import type { TargetSpec } from './models/spec.js';
import { filledOnly, type PatchDataset, type PatchSet } from './patches.js';

/** The range of possible values, for measures of images: an index is -1 to 1, a reflectance 0 to 1. */
const PEAK = { map: 2, clear: 1 };

/** Measures of predictions in the shape of the targets. Those of images are means over the patches that have them. */
export function evaluate({ kind }: TargetSpec, patches: PatchSet, predicted: Float32Array): Metrics {
  const basic = metricsOf(countingPairs(patches, predicted));
  if (kind === 'mean') return basic;
  const images = planePairs(patches, predicted);
  if (kind === 'clear') {
    return {
      ...basic,
      ...optional(
        'psnr',
        meanOf(images, (image) => psnr(image, PEAK.clear)),
      ),
      ...optional(
        'ssim',
        meanOf(images, (image) => ssim(image, PEAK.clear)),
      ),
    };
  }
  const similarities = images.map((image) => msSsim(image, PEAK.map)).filter((one) => one !== null);
  // Patches with masked corners may reach fewer scales; only equals are averaged.
  const scales = Math.max(0, ...similarities.map((one) => one.scales));
  const comparable = similarities.filter((one) => one.scales === scales);
  if (comparable.length === 0) return basic;
  return { ...basic, msSsim: { value: meanOf(comparable, ({ value }) => value)!, scales } };
}

/** What needs no training, on the validation patches. */
export function baselinesOf(
  target: TargetSpec,
  { train, validation }: Pick<PatchDataset, 'train' | 'validation'>,
): Baselines {
  const score = (predicted: Float32Array) => evaluate(target, validation, predicted);
  const known = filledOnly(train);
  const fitted = {
    mean: score(trainingMean(known)(validation)),
    linear: score(linearPredictor(ridge(lineSums(known)))(validation)),
  };
  if (target.kind !== 'clear') return fitted;
  const [unchanged, nearest, median] = [0, 1, 2].map((source) => score(bandsFrom(validation, source)));
  return { ...fitted, unchanged, nearest, median };
}

/** Bands of the inputs of cloud removal: of the cloudy date (0), of the nearest clear values (1), or the medians (2). */
function bandsFrom({ inputs, inputBands, targetBands }: PatchSet, source: number): Float32Array {
  const pixels = inputs.length / inputBands;
  return Float32Array.from({ length: pixels * targetBands }, (_, i) => {
    const pixel = Math.floor(i / targetBands);
    return inputs[pixel * inputBands + source * targetBands + (i % targetBands)];
  });
}

/** True and predicted values of all that counts. */
export function countingPairs(
  { targets, counts, targetBands }: PatchSet,
  predicted: Float32Array,
): Predictions {
  if (!counts) return { truth: targets, predicted };
  const counting = (_: number, i: number) => counts[Math.floor(i / targetBands)] === 1;
  return { truth: targets.filter(counting), predicted: predicted.filter(counting) };
}

/** Each band of each patch as an image. */
function planePairs(
  { count, size, targetBands, targets, counts }: PatchSet,
  predicted: Float32Array,
): ImagePair[] {
  const pixels = size * size;
  return Array.from({ length: count * targetBands }, (_, i) => {
    const patch = Math.floor(i / targetBands);
    const plane = (values: Float32Array) =>
      Float32Array.from(
        { length: pixels },
        (_, p) => values[(patch * pixels + p) * targetBands + (i % targetBands)],
      );
    return {
      width: size,
      height: size,
      truth: plane(targets),
      predicted: plane(predicted),
      counts: counts && Uint8Array.from(counts.subarray(patch * pixels, (patch + 1) * pixels)),
    };
  });
}

/** Of finite values; null where there is none. */
function meanOf<T>(items: T[], of: (item: T) => number | null): number | null {
  const values = items.map(of).filter((value) => value !== null && Number.isFinite(value)) as number[];
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function optional<K extends string>(name: K, value: number | null): Partial<Record<K, number>> {
  return value === null ? {} : ({ [name]: value } as Record<K, number>);
}
