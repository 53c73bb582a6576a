/** The requests that a training process answers, and the types of a cell's task and outcome. */
import type { Handler } from '../../engines/index.js';
import type { Window } from '../../raster/index.js';
import type { SampleMessage } from '../adaptation/index.js';
import type { AcquisitionFiles, DatePair } from '../data/index.js';
import type { EpochLosses } from '../evaluation/index.js';
import type { FreezingSchedule, TrainedCell } from '../learners/index.js';
import type { ModelFiles } from '../models/index.js';
import type { SourceModelFiles, WarmStartOptions } from '../warm-start/index.js';

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
  build: Handler<{ model: string; seed: number }, ModelFiles>;
  train: Handler<TrainRequest, Exclude<TrainCellResult, { error: TrainingError }>, EpochProgress>;
};
