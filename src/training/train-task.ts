/** The requests that a training process answers: the task of a cell, its outcome, and the images and patches that it trains on. */
import type { Handler } from '../engines/index.js';
import type { Window } from '../raster/index.js';
import { type AcquisitionFiles, type DatePair, type ReadRasters, readAcquisitions } from './acquisitions.js';
import type { EpochLosses } from './evaluation.js';
import type { SampleMessage } from './fine-tuning.js';
import type { HistoryUse } from './history.js';
import { heldOutDates } from './hold-out.js';
import { labelImages } from './labelled-images.js';
import type { FreezingSchedule } from './learner.js';
import type { ModelSpec } from './models/spec.js';
import type { ModelFiles } from './models/weights.js';
import { type HistoryOptions, makePatches, type TrainValidationPatches } from './patches.js';
import type { ModelChoice, TrainedCell } from './report.js';
import { imagesToScore, type TileImages } from './tile-scores.js';
import type { SourceModelFiles, WarmStartOptions } from './warm-start.js';

/** One model to train. */
export interface TrainCellTask {
  /** Name of the task in progress and results. */
  id: string;
  /** Same value for all tasks of one cell. Default: the task shares nothing with others. */
  cell?: string;
  model: string;
  seed: number;
  /** Default: the value of the model. */
  epochs?: number;
  /** Stops if the selection loss has not improved for this number of epochs. */
  patience?: number;
  dates: AcquisitionFiles[];
  /** For cloud removal. */
  pairs?: DatePair[];
  /** First held-out time of the job, milliseconds since 1970. Default: only ground is held out. */
  validationFrom?: number;
  /** Held-out days of the job, instead of `validationFrom`. */
  holdOut?: string[];
  /** Which other dates are the history that the model reads. Default: none. */
  history?: HistoryUse;
  /** Days of the training at all places of a region, which are left out in groups. Default: those of the cell. */
  days?: string[];
  /** Models of other cells that it may start from, the best first. Default: it starts fresh. */
  start?: WarmStartOptions;
  /** Schedule of the trainable layers if the training starts from another model. */
  fineTuning?: FreezingSchedule;
  /** File in which the state of the training is saved, and from which it resumes. */
  checkpoint?: string;
  adaptation?: AdaptationStep;
}

/**
 * Instead of a training: one of the two steps in which a cell adapts the base model of a region. `sample` returns some of its training
 * patches for the other cells, and `fine-tune` the model.
 */
export type AdaptationStep = {
  base: SourceModelFiles;
  /** Present if the base reads history: the candidate that it is. Places use such a base as it is. */
  choice?: ModelChoice;
  /** The ground that the base did not train on, in pixels of the cell. Absent if the base did not train on this cell. */
  heldOut?: Window;
} & ({ step: 'sample'; patches: number } | FineTuneStep);

export interface FineTuneStep {
  step: 'fine-tune';
  /** File with the samples of all cells. */
  samples: string;
  /** Also trains a fresh model, and compares it on the validation patches. */
  withFresh: boolean;
  /** The ground has changed since the base was trained: the cell takes full steps, and keeps all of its fine-tuning. */
  hasChanged: boolean;
}

export interface TrainingError {
  code: string;
  message: string;
}

export type TrainCellResult =
  | { trained: TrainedCell }
  | { sample: SampleMessage }
  | { skipped: string }
  | { error: TrainingError };

interface TrainRequest {
  task: TrainCellTask;
  /** Memory that the process may use, in bytes. */
  limit?: number;
  /** True if the process should keep the decoded bands, because another task for the same cell is queued. */
  keep: boolean;
}

export interface EpochProgress {
  epoch: EpochLosses;
  /** The largest resident set of the process so far, in bytes. */
  memory: number;
}

export type TrainingHandlers = {
  /** Builds an untrained model. */
  build: Handler<{ model: string; seed: number; choice?: ModelChoice }, ModelFiles>;
  train: Handler<TrainRequest, Exclude<TrainCellResult, { error: TrainingError }>, EpochProgress>;
};

interface CellDataset {
  dataset: TrainValidationPatches;
  /** Files for the tile scores. */
  source: TileImages;
}

/** The part of a task that its patches depend on. */
export type DatasetTask = Pick<
  TrainCellTask,
  'dates' | 'pairs' | 'validationFrom' | 'holdOut' | 'history' | 'days'
> &
  Pick<HistoryOptions, 'isShared'>;

/** Returns the patches of a cell, or the reason why it cannot be trained. The pixels are released. `kept`: see `readAcquisitions`. */
export async function readCellDataset(
  spec: ModelSpec,
  { dates, pairs, history: use, days, isShared, ...task }: DatasetTask,
  kept?: ReadRasters,
): Promise<(CellDataset | { skipped: string }) & { bytesRead: number }> {
  const pixels = await readAcquisitions(dates, kept);
  if ('skipped' in pixels) return { ...pixels, bytesRead: 0 };
  const { bytesRead } = pixels;
  const images = labelImages(spec, pixels.dates, pairs);
  const patches = makePatches(
    spec,
    images,
    heldOutDates(task),
    spec.target.kind === 'clear' ? {} : { use, days, isShared },
  );
  if ('skipped' in patches) return { ...patches, bytesRead };
  const { dataset } = patches;
  const scored = imagesToScore(images, dataset.validationImages);
  const trained = dataset.history && {
    dates: dataset.trainingImages.map((i) => dates[i]!),
    use: dataset.history.use,
  };
  return { dataset, source: { dates, pairs, scored, ...(trained && { history: trained }) }, bytesRead };
}
