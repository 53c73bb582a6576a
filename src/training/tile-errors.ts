/** Compares the prediction of one tile with its measured pixels, apart for ground that trained the model and other ground. */
import type { Tf } from '../engines/index.js';
import type { PixelGrid } from '../grid/index.js';
import type { Window } from '../raster/index.js';
import { type AcquisitionFiles, differInSize } from './acquisitions.js';
import { type HistoryFiles, imagesOf } from './date-errors.js';
import type { DayPair } from './dates.js';
import { type TargetStatistics, targetStatistics } from './evaluation.js';
import type { LoadModel } from './halo.js';
import { historyPlanes } from './history.js';
import { copiesOf, labelImages } from './labelled-images.js';
import { historyLayout, type ModelSpec, receptiveField } from './models/spec.js';
import { datesOf, OUTPUT_ENCODING, type PredictTask, predictPixels } from './predict-tile.js';

/** A cell of the training of a model, by its edges: 0 and 1 are the western and eastern, or northern and southern, edges of a tile. */
export interface TrainedCell {
  west: number;
  east: number;
  north: number;
  south: number;
  /** If the tile is of the same cell: the ground that the training held out, for a tile of this size. */
  heldOut?: { window: Window; size?: PixelGrid };
}

/** Task of a child process: the errors of one tile. */
export interface ScoreTask extends Omit<PredictTask, 'tile' | 'groups'> {
  /** The training mean, the simplest baseline. */
  mean: number;
  /** The other dates of the place, from which the baselines are computed. */
  otherDates: HistoryFiles;
  /** The dates of the place in the collection of the model, if it is another one. */
  trainedDates: AcquisitionFiles[];
  trained: TrainedCell[];
  /** True if the date trained the model. Ground that trained it is then only counted. */
  isTrainingDate: boolean;
}

export const COMPARED = ['model', 'mean', 'history', 'nearest'] as const;
/** Sums over the compared values: pixels, or means of patches. */
export type ErrorSums = Record<(typeof COMPARED)[number], Record<'squares' | 'errors' | 'sizes', number>>;

export interface GroundErrors {
  isTrainedGround: boolean;
  /** The day, with each day on which the place has the same image. Absent if all differ. */
  copies?: DayPair[];
  truth: TargetStatistics;
  /** Absent for ground and dates that trained the model. */
  applied?: ErrorSums;
  /** For other ground with a history: the errors without it. */
  blind?: ErrorSums;
}

/** Part of the pixels of a patch that must be measured for its mean to count, as in training. */
const MIN_MEASURED = 0.75;

/**
 * Compares what the model predicts: the pixels of maps, or the means of patches side by side. Only pixels that were measured count. An
 * empty list: none was, or the model predicts none of them.
 */
export async function tileErrors(
  tf: Tf,
  spec: ModelSpec,
  task: ScoreTask,
  load: LoadModel,
): Promise<GroundErrors[]> {
  const { isTrainingDate, otherDates } = task;
  const [pixels] = await datesOf([task.date], task.size);
  const [image] = labelImages(spec, [pixels]);
  const { targets, targetMask } = image;
  const { width, height } = pixels;
  const side = spec.target.kind === 'mean' ? spec.patchSize : 1;
  const isTrained = trainedPixels(pixels, task.trained, receptiveField(spec));
  const maskOf = (ground: number, ...masks: ArrayLike<number>[]) =>
    targetMask.map((is, at) => Number(is && isTrained[at] === ground && masks.every((mask) => mask[at])));
  const means = (mask: Uint8Array, value: ValueAt) => blockMeans(pixels, side, mask, value);
  const truthIn = (mask: Uint8Array) => means(mask, (at) => targets[0][at]);
  const only = isTrainingDate ? truthIn(maskOf(1)) : [];
  const counted = only.length > 0 ? [{ isTrainedGround: true, truth: targetStatistics(only) }] : [];
  const grounds = isTrainingDate ? [0] : [0, 1];
  if (grounds.every((ground) => !maskOf(ground).includes(1))) return counted;

  const images = await imagesOf(spec, otherDates.dates, pixels);
  const planes = historyPlanes(spec, pixels, images, otherDates.use, { column: 0, row: 0, width, height });
  const trained = await imagesOf(spec, task.trainedDates, pixels);
  const copies = copiesOf(image, [...images, ...trained]);
  const layout = historyLayout(spec);
  const orMean = (plane: Float32Array) => (at: number) => (Number.isNaN(plane[at]) ? task.mean : plane[at]);
  const mean = () => task.mean;
  const applied = await predictPixels(tf, spec, task, pixels, load, images);
  const withHistory = { mean, history: orMean(planes[layout.mean]), nearest: orMean(planes[layout.nearest]) };
  const isKnown = planes[layout.has].includes(1);
  const needsBlind = isKnown && task.history && maskOf(0).includes(1);
  const blind = needsBlind ? await predictPixels(tf, spec, task, pixels, load) : applied;
  if (!applied || !blind) return counted;
  const errors = grounds.flatMap((ground): GroundErrors[] => {
    const mask = maskOf(ground, applied.valid, blind.valid);
    const truth = truthIn(mask);
    if (truth.length === 0) return [];
    const sums = ({ stored }: typeof applied, baselines: Record<'mean' | 'history' | 'nearest', ValueAt>) =>
      sumErrors(truth, (name) =>
        means(mask, name === 'model' ? (at) => stored[at] * OUTPUT_ENCODING.scale : baselines[name]),
      );
    return [
      {
        isTrainedGround: ground === 1,
        ...(copies.length > 0 && { copies }),
        truth: targetStatistics(truth),
        applied: sums(applied, withHistory),
        ...(ground === 0 && isKnown && { blind: sums(blind, { mean, history: mean, nearest: mean }) }),
      },
    ];
  });
  return [...counted, ...errors];
}

type ValueAt = (pixel: number) => number;

/** Means of the pixels in a mask over blocks side by side, without the blocks of which the mask has too few. */
function blockMeans({ width, height }: PixelGrid, side: number, mask: Uint8Array, value: ValueAt): number[] {
  const means: number[] = [];
  for (let top = 0; top + side <= height; top += side)
    for (let left = 0; left + side <= width; left += side) {
      let [count, sum] = [0, 0];
      for (let y = top; y < top + side; y++)
        for (let at = y * width + left, end = at + side; at < end; at++)
          if (mask[at]) {
            count++;
            sum += value(at);
          }
      if (count >= MIN_MEASURED * side * side) means.push(sum / count);
    }
  return means;
}

/**
 * 1 where a pixel lies on ground that trained the model: within `gap` pixels of any cell of the training, outside of the ground that the
 * cell held out, which has this gap itself.
 */
function trainedPixels(size: PixelGrid, trained: readonly TrainedCell[], gap: number): Uint8Array {
  const { width, height } = size;
  const is = new Uint8Array(width * height);
  for (const { west, east, north, south, heldOut } of trained) {
    const kept =
      heldOut && differInSize(heldOut.size ?? size, size) === undefined ? heldOut.window : undefined;
    const isKept = (x: number, y: number) =>
      kept && x >= kept.column && x < kept.column + kept.width && y >= kept.row && y < kept.row + kept.height;
    for (
      let y = Math.max(0, Math.floor(north * height) - gap);
      y < Math.min(height, Math.ceil(south * height) + gap);
      y++
    )
      for (
        let x = Math.max(0, Math.floor(west * width) - gap);
        x < Math.min(width, Math.ceil(east * width) + gap);
        x++
      )
        if (!isKept(x, y)) is[y * width + x] = 1;
  }
  return is;
}

function sumErrors(
  truth: readonly number[],
  predictedBy: (name: keyof ErrorSums) => readonly number[],
): ErrorSums {
  const sums = COMPARED.map((name) => {
    const sum = { squares: 0, errors: 0, sizes: 0 };
    for (const [i, predicted] of predictedBy(name).entries()) {
      const error = predicted - truth[i];
      sum.squares += error * error;
      sum.errors += error;
      sum.sizes += Math.abs(error);
    }
    return [name, sum];
  });
  return Object.fromEntries(sums) as ErrorSums;
}
