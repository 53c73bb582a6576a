/** The requests that a training process answers, and the types of a cell's task and outcome. */
import type { Handler } from '../../engines/index.js';
import type { AcquisitionFiles, DatePair } from '../data/index.js';
import type { EpochLosses } from '../evaluation/index.js';
import type { FreezingSchedule, TrainedCell } from '../loop/index.js';
import type { WarmStartOptions } from '../warm-start/index.js';

/** One model to train. */
export interface TrainCellTask {
  /** Names the task in progress and results. */
  id: string;
  /** The same of all tasks of one place. Default: it shares nothing with others. */
  cell?: string;
  model: string;
  seed: number;
  /** Default: the model's. */
  epochs?: number;
  /** Stops if the selection loss has not improved for this number of epochs. */
  patience?: number;
  dates: AcquisitionFiles[];
  /** Of a model that removes cloud. */
  pairs?: DatePair[];
  /** The first time that the job holds out, milliseconds since 1970. Default: only ground is held out. */
  validationFrom?: number;
  /** Models of other places that it may start from, the best first. Default: it starts fresh. */
  start?: WarmStartOptions;
  /** Which layers learn when, of a model that starts from another. */
  fineTuning?: FreezingSchedule;
  /** File in which the training is kept as it stands, and from which it goes on. */
  checkpoint?: string;
}

export interface TrainingError {
  code: string;
  message: string;
}

export type TrainCellResult = { trained: TrainedCell } | { skipped: string } | { error: TrainingError };

export interface TrainRequest {
  task: TrainCellTask;
  /** Memory that the process may use, in bytes. */
  limit?: number;
  /** The process keeps the decoded bands, because another task for the same place is queued. */
  keep: boolean;
}

export interface EpochProgress {
  epoch: EpochLosses;
  /** The largest resident set of the process so far, in bytes. */
  memory: number;
}

export type TrainingHandlers = {
  train: Handler<TrainRequest, Exclude<TrainCellResult, { error: TrainingError }>, EpochProgress>;
};
