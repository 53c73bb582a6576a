/** Results of a training. The model card, the results of a job and the messages between processes extend these types. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import { predictPatches } from './batches.js';
import type { Candidate, CandidateName, RidgeSettings } from './candidates.js';
import type { DateError } from './date-errors.js';
import type { DayPair } from './dates.js';
import {
  type Baselines,
  type EpochLosses,
  errorsByPatch,
  evaluateBaselines,
  evaluatePredictions,
  evaluateSelection,
  type HistoryBaselines,
  type Metrics,
  type ModelMetrics,
  maskedPairs,
  type Predictions,
  type SelectionScore,
  type Skill,
  skillOf,
  type TargetStatistics,
  type TileScore,
  targetStatistics,
  trainingMean,
} from './evaluation.js';
import type { HistoryUse } from './history.js';
import { type DisplayRange, displayRange } from './image-metrics.js';
import type { ModelSpec } from './models/spec.js';
import type { ModelFiles } from './models/weights.js';
import { type AppliedHoldOut, filledOnly, type Patches, type TrainValidationPatches } from './patches.js';
import type { WarmStartResult } from './warm-start.js';

/** Scores of a model at one cell, and how the patches of the cell were split. */
export interface CellReport {
  /** Patches side by side, without the overlap that training uses. */
  patches: TrainValidationPatches['counts'];
  split: string;
  /** Absent for a model of several cells, and in reports of older versions. */
  holdOut?: AppliedHoldOut;
  metrics: ModelMetrics;
  /** Absent without selection patches. */
  selection?: SelectionScore;
  /** Range with which images are scored, see image-metrics.ts. Absent if a patch has one value. */
  displayRange?: DisplayRange;
  /** Scores on the same validation patches. */
  baseline: Baselines;
  /** On the same patches. */
  skill: Skill;
  /** The mean of the target over the training samples, from which skill is counted. Absent for cloud removal. */
  trainingMean?: number;
  /** Absent for cloud removal, and without patches or dates to choose on. */
  choice?: ModelChoice;
  questions?: QuestionErrors[];
  /** Days on which the cell has nearly the same image. Absent if all differ. */
  copies?: DayPair[];
}

/**
 * Which candidate serves a place, and how it was chosen: dates were left out in groups. A place without a history has one group, its
 * selection patches.
 */
export interface ModelChoice {
  serves: CandidateName;
  candidates: Candidate[];
  /** Absent if the model reads no history. */
  history?: HistoryChoice;
}

export interface HistoryChoice {
  use: HistoryUse;
  /** The dates of the place that were its history in training. */
  dates: string[];
  /** The first day of each group. */
  groups: string[];
  /** The candidate where a pixel has no history. */
  fallback: 'mean' | 'ridge';
  /** The planes that the ridge regression reads, and its penalty. */
  ridge: RidgeSettings;
}

/**
 * The questions that models answer in use: other ground on the dates of the training, the training ground on other dates, and other ground
 * on other dates. `Known`: the model also reads the history of the other ground.
 */
export const QUESTIONS = [
  'otherGround',
  'otherGroundKnown',
  'otherDates',
  'otherGroundAndDates',
  'otherGroundAndDatesKnown',
] as const;
export type Question = (typeof QUESTIONS)[number];

/** Sums of squared errors of one question on one date. */
export interface QuestionErrors {
  question: Question;
  /** RFC 3339. */
  datetime: string;
  /** Number of values. */
  values: number;
  model: number;
  mean: number;
  history: number;
  nearest: number;
  /** Absent if no ridge regression was scored. */
  linear?: number;
}

export interface TrainingReport extends CellReport {
  losses: EpochLosses[];
  /** The epoch whose weights are kept; 0 if none was better than the start. */
  bestEpoch: number;
  /** Statistics of the true values in the validation patches. */
  spread: TargetStatistics;
  /** Size of the files that the training needs, including files that another model of the cell had already read. */
  bytesRead: number;
  seconds: number;
  /** Errors on each date with enough clear ground. Absent for models of several cells, of `cloud-removal`, and of older versions. */
  dateErrors?: DateError[];
}

/** A model that was trained in a child process. */
export interface TrainedCell extends TrainingReport {
  files: ModelFiles;
  epochs: number;
  /** Absent if there were no models to start from. */
  start?: WarmStartResult;
  /** Values of the validation patches. Absent if a patch has more than one value. */
  predictions?: Predictions;
  adaptation?: AdaptationProvenance;
}

/** How a model was made from the base model of a region. */
export interface AdaptationProvenance {
  base: { id: string; version: string };
  /** The part of the fine-tuning that this place keeps. */
  factor: number;
  /** Training patches of this place. */
  patches: number;
  /** Patches of other places that it was trained on, too. */
  others: number;
  /** The dates of the training at the places that shared patches, RFC 3339. Absent without patches of other places. */
  dates?: string[];
  /** Scores on the validation patches. */
  errors: {
    base: Metrics;
    /** The score of a model that was trained for this place alone; absent if none was. */
    fresh?: Metrics;
  };
}

/** Scores a trained model on entire tiles. */
export type ScoreTile = (model: LayersModel, range: DisplayRange) => Promise<TileScore>;

/** Scores a trained model and the baselines. Also returns the values of the validation patches that count. */
export async function reportOf(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  scoreTile: ScoreTile | undefined,
  ofHistory?: HistoryBaselines,
): Promise<{ report: CellReport; held: Predictions; spread: TargetStatistics }> {
  const { train, selection, validation, counts, split, holdOut } = dataset;
  const range = displayRange(train);
  const score = (patches: Patches, values: Float32Array) => evaluatePredictions(patches, values, range);
  const predicted = predictPatches(tf, model, validation);
  const held = maskedPairs(validation, predicted);
  const tile = range && (await scoreTile?.(model, range));
  const meanValues = (ofHistory?.mean ?? trainingMean(filledOnly(train)))(validation);
  const mean = errorsByPatch(validation, meanValues);
  const skill = skillOf(
    errorsByPatch(validation, predicted).map((error, i) => ({ model: error, mean: mean[i]! })),
  );
  return {
    report: {
      patches: counts,
      split,
      holdOut,
      metrics: {
        train: score(filledOnly(train), predictPatches(tf, model, train)),
        validation: score(validation, predicted),
        ...(tile && { tile }),
      },
      ...(selection && { selection: evaluateSelection(tf, model, { train, selection }) }),
      ...(range && { displayRange: range }),
      ...(dataset.copies.length > 0 && { copies: dataset.copies }),
      baseline: evaluateBaselines(spec.target, dataset, range, ofHistory),
      skill,
      ...(spec.target.kind !== 'clear' && { trainingMean: meanValues[0]! }),
    },
    held,
    spread: targetStatistics(held.truth),
  };
}
