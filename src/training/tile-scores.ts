/**
 * Scores a model on entire tiles of its validation dates. A tile is large enough for the five scales of multi-scale SSIM (176 pixels);
 * the held-out side is narrower. So these scores include the ground that the model was trained on: on other dates, or on the same date if
 * there is only one. They complement the scores of the validation patches.
 */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import {
  type AcquisitionFiles,
  type AcquisitionPixels,
  type DatePair,
  type ReadRasters,
  readAcquisitions,
} from './acquisitions.js';
import { fillClouds } from './cloud-filling.js';
import { type HistoryFiles, imagesOf } from './date-errors.js';
import { trainingFailed } from './errors.js';
import type { TileScore } from './evaluation.js';
import { historyPlanes } from './history.js';
import { type DisplayRange, imageScores, meanScores } from './image-metrics.js';
import { type LabelledImage, labelImages } from './labelled-images.js';
import type { ModelSpec } from './models/spec.js';
import { predictImage } from './windows.js';

/** Maximum number of scored images of a cell: each takes seconds. */
const MAX_IMAGES = 3;

/** Files of a cell, and the scored images: indices of dates, or of pairs if there are pairs. */
export interface TileImages {
  dates: AcquisitionFiles[];
  pairs?: DatePair[];
  scored: number[];
  /** Present if the model reads the history of the cell. */
  history?: HistoryFiles;
}

/** Returns at most three of the validation images: those with the most pixels that count, in their order. */
export function imagesToScore(images: LabelledImage[], validation: number[]): number[] {
  const counting = new Map(
    validation.map((i) => [i, images[i].targetMask.reduce((sum, one) => sum + one, 0)] as const),
  );
  return validation
    .toSorted((a, b) => counting.get(b)! - counting.get(a)! || a - b)
    .slice(0, MAX_IMAGES)
    .sort((a, b) => a - b);
}

/**
 * Reads, predicts and scores one image after another, so that only one is in memory. Files in `kept` are not read again. Throws what
 * `readAcquisitions` throws.
 */
export async function scoreTile(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  range: DisplayRange,
  source: TileImages,
  kept?: ReadRasters,
): Promise<TileScore> {
  const scores = [];
  const times = new Set<number>();
  for (const number of source.scored) {
    const { image, dates } = await readImage(spec, source, number, kept);
    const { width, height, targets: truth, targetMask } = image;
    const predicted =
      spec.target.kind === 'clear'
        ? cloudFree(tf, model, spec, dates)
        : predictImage(tf, model, spec, await withHistoryOf(spec, image, source.history, kept));
    scores.push(imageScores({ width, height, truth, predicted, counts: targetMask }, range));
    // The first date of a pair is the cloudy one.
    times.add(dates[0].time);
  }
  const dates = [...times].sort((a, b) => a - b).map((time) => new Date(time).toISOString());
  return { ...meanScores(scores), dates };
}

/** Returns an image with the planes of its history, if there are files of one. */
async function withHistoryOf(
  spec: ModelSpec,
  image: LabelledImage,
  history: HistoryFiles | undefined,
  kept: ReadRasters | undefined,
) {
  if (!history) return image;
  const { width, height, inputs, inputMask } = image;
  const images = await imagesOf(spec, history.dates, { width, height }, kept);
  const planes = historyPlanes(spec, image, images, history.use, { column: 0, row: 0, width, height });
  return {
    width,
    height,
    inputMask,
    inputs: [...inputs.slice(0, spec.inputs.length), ...planes],
    history: spec.inputs.length,
  };
}

async function readImage(
  spec: ModelSpec,
  { dates, pairs }: TileImages,
  number: number,
  kept: ReadRasters | undefined,
): Promise<{ image: LabelledImage; dates: AcquisitionPixels[] }> {
  const pair = pairs?.[number];
  const { prior = [] } = pair ?? {};
  const numbers = pair ? [pair.cloudy, pair.clear, ...prior] : [number];
  const files = numbers.map((date) => dates[date]);
  const read = await readAcquisitions(files, kept);
  if ('skipped' in read) throw trainingFailed(read.skipped);
  const own = pair && [{ cloudy: 0, clear: 1, prior: prior.map((_, i) => i + 2) }];
  return { image: labelImages(spec, read.dates, own)[0], dates: read.dates };
}

/** Returns the bands of the cloudy date with its clouds filled, as in a cloud-free tile. */
function cloudFree(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  [cloudy, _clear, ...others]: AcquisitionPixels[],
): Float32Array[] {
  const made = fillClouds(tf, model, spec, cloudy, others);
  return spec.inputs.map((name, b) => {
    const own = cloudy.bands[name]!;
    return made ? own.map((value, at) => (made.filled[at] ? made.planes[b][at] : value)) : own;
  });
}
