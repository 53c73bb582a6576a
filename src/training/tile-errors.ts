/** Compares the prediction of one tile with its measured pixels, apart for ground that trained the model and other ground. */
import type { Tf } from '../engines/index.js';
import type { PixelGrid } from '../grid/index.js';
import type { Window } from '../raster/index.js';
import { differInSize } from './acquisitions.js';
import { type HistoryFiles, imagesOf } from './date-errors.js';
import { type TargetStatistics, targetStatistics } from './evaluation.js';
import type { LoadModel } from './halo.js';
import { historyPlanes } from './history.js';
import { labelImages } from './labelled-images.js';
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
  trained: TrainedCell[];
  /** True if the date trained the model. Ground that trained it is then only counted. */
  isTrainingDate: boolean;
}

export const COMPARED = ['model', 'mean', 'history', 'nearest'] as const;
/** Sums over pixels. */
export type ErrorSums = Record<(typeof COMPARED)[number], Record<'squares' | 'errors' | 'sizes', number>>;

export interface GroundErrors {
  isTrainedGround: boolean;
  truth: TargetStatistics;
  /** Absent for ground and dates that trained the model. */
  applied?: ErrorSums;
  /** For other ground with a history: the errors without it. */
  blind?: ErrorSums;
}

/** Only pixels that were measured count. An empty list: none was, or the model predicts none of them. */
export async function tileErrors(
  tf: Tf,
  spec: ModelSpec,
  task: ScoreTask,
  load: LoadModel,
): Promise<GroundErrors[]> {
  const { isTrainingDate, otherDates } = task;
  const [pixels] = await datesOf([task.date], task.size);
  const [{ targets, targetMask }] = labelImages(spec, [pixels]);
  const isTrained = trainedPixels(pixels, task.trained, receptiveField(spec));
  const pixelsOf = (ground: number) =>
    [...targetMask.keys()].filter((at) => targetMask[at] && isTrained[at] === ground);
  const truthOf = (at: number[]) => targetStatistics(at.map((pixel) => targets[0][pixel]));
  const only = isTrainingDate ? pixelsOf(1) : [];
  const counted = only.length > 0 ? [{ isTrainedGround: true, truth: truthOf(only) }] : [];
  const scored = (isTrainingDate ? [0] : [0, 1]).map((ground) => ({ ground, measured: pixelsOf(ground) }));
  if (scored.every(({ measured }) => measured.length === 0)) return counted;

  const images = await imagesOf(spec, otherDates.dates, pixels);
  const { width, height } = pixels;
  const planes = historyPlanes(spec, pixels, images, otherDates.use, { column: 0, row: 0, width, height });
  const layout = historyLayout(spec);
  const orMean = (plane: Float32Array) => (at: number) => (Number.isNaN(plane[at]) ? task.mean : plane[at]);
  const mean = () => task.mean;
  const applied = await predictPixels(tf, spec, task, pixels, load, images);
  const withHistory = { mean, history: orMean(planes[layout.mean]), nearest: orMean(planes[layout.nearest]) };
  const isKnown = planes[layout.has].includes(1);
  const needsBlind = isKnown && task.history && scored[0].measured.length > 0;
  const blind = needsBlind ? await predictPixels(tf, spec, task, pixels, load) : applied;
  if (!applied || !blind) return counted;
  const errors = scored.flatMap(({ ground, measured }): GroundErrors[] => {
    const at = measured.filter((pixel) => applied.valid[pixel] && blind.valid[pixel]);
    if (at.length === 0) return [];
    const sums = ({ stored }: typeof applied, baselines: Record<'mean' | 'history' | 'nearest', ValueAt>) =>
      sumErrors(at, (pixel) => targets[0][pixel], {
        model: (pixel) => stored[pixel] * OUTPUT_ENCODING.scale,
        ...baselines,
      });
    return [
      {
        isTrainedGround: ground === 1,
        truth: truthOf(at),
        applied: sums(applied, withHistory),
        ...(ground === 0 && isKnown && { blind: sums(blind, { mean, history: mean, nearest: mean }) }),
      },
    ];
  });
  return [...counted, ...errors];
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

type ValueAt = (pixel: number) => number;

function sumErrors(
  at: readonly number[],
  truth: ValueAt,
  predicted: Record<keyof ErrorSums, ValueAt>,
): ErrorSums {
  const sums = COMPARED.map((name) => {
    const sum = { squares: 0, errors: 0, sizes: 0 };
    for (const pixel of at) {
      const error = predicted[name](pixel) - truth(pixel);
      sum.squares += error * error;
      sum.errors += error;
      sum.sizes += Math.abs(error);
    }
    return [name, sum];
  });
  return Object.fromEntries(sums) as ErrorSums;
}
