/** Trains one model on one cell, with early stopping: the weights of the epoch with the lowest selection loss are kept. */

import { rm } from 'node:fs/promises';
import type { Variable } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import { randomStream, shuffledOrder } from '../utils/random.js';
import { augmentedBatch, predictPatches } from './batches.js';
import { type Candidate, type CandidateName, meanOf, simplestCandidate } from './candidates.js';
import { CHECKPOINT_INTERVAL_S, findCheckpoint, writeTrainingCheckpoint } from './checkpoint.js';
import { diverged } from './errors.js';
import {
  type EpochLosses,
  type HistoryBaselines,
  initialFitStatistics,
  linearPredictor,
  meanError,
  meanSquaredError,
  sufficientStatistics,
} from './evaluation.js';
import {
  asVariables,
  type BatchNormStatistics,
  cosineLearningRate,
  type FreezingSchedule,
  ganLearner,
  headLayerNames,
  headOnlyEpochs,
  type Learner,
  regressionLearner,
  WARMUP_FRACTION,
} from './learner.js';
import { buildDiscriminator, buildModel, serveLinear } from './models/network.js';
import { type ModelSpec, startsWithLinearFit } from './models/spec.js';
import { filledOnly, type Patches, type TrainValidationPatches } from './patches.js';
import { type ModelChoice, reportOf, type ScoreTile, type TrainedCell } from './report.js';
import { type LinearModel, ridge } from './ridge-regression.js';
import { type WarmStartOptions, type WarmStartResult, warmStart } from './warm-start.js';

/**
 * Returns the epoch with the lowest selection loss, the earliest of equals; 0 if none is lower than `initial`, the loss before the first
 * epoch. Without selection patches it is the last epoch.
 */
export function bestEpoch(losses: EpochLosses[], initial?: number): number {
  const last = losses.at(-1);
  if (last && last.selection === undefined) return last.epoch;
  // Checkpoints have null instead of NaN and infinity.
  let best = { epoch: 0, loss: Number.isFinite(initial) ? initial! : Infinity };
  for (const { epoch, selection = Infinity } of losses)
    if (selection < best.loss) best = { epoch, loss: selection };
  return best.epoch;
}

/** True if the selection loss has not improved for `patience` epochs. */
export function hasStalled(losses: EpochLosses[], initial?: number, patience = Infinity): boolean {
  const last = losses.at(-1);
  return last?.selection !== undefined && last.epoch - bestEpoch(losses, initial) >= patience;
}

/** True if the weights after the last of these epochs are kept so far, and if the training ends. `lastEpoch`: see `TrainOptions`. */
export function stateAfter(
  losses: EpochLosses[],
  initial: number | undefined,
  { epochs, patience, lastEpoch }: { epochs: number } & Pick<TrainOptions, 'patience' | 'lastEpoch'>,
): { isKept: boolean; isLast: boolean } {
  const { epoch } = losses.at(-1)!;
  if (lastEpoch !== undefined) return { isKept: epoch === lastEpoch, isLast: epoch === lastEpoch };
  return {
    isKept: bestEpoch(losses, initial) === epoch,
    isLast: epoch === epochs || hasStalled(losses, initial, patience),
  };
}

/** A copy of the weights of a model on the engine. Checkpoints save its variables with those of the learner. */
export class WeightsSnapshot {
  readonly variables: Variable[];
  private readonly own: Variable[];

  constructor(tf: Tf, model: LayersModel) {
    this.own = asVariables(model.weights);
    this.variables = this.own.map((weight) => tf.variable(weight, false));
  }

  save(): void {
    this.variables.forEach((copy, i) => {
      copy.assign(this.own[i]);
    });
  }

  /** Restores the weights of the last `save`. */
  restore(): void {
    this.own.forEach((weight, i) => {
      weight.assign(this.variables[i]);
    });
  }

  dispose(): void {
    for (const variable of this.variables) variable.dispose();
  }
}

interface FitOptions {
  /** Passes over the training patches. Default: the value of the model. */
  epochs?: number;
  /** Stops if the selection loss has not improved for this number of epochs. Default: all epochs are run. */
  patience?: number;
  seed: number;
  /** Awaited after each epoch. */
  onEpoch?: (loss: EpochLosses) => void | Promise<void>;
  /** Models of other cells that the training may start from. Default: it starts fresh. */
  start?: WarmStartOptions;
  /** Schedule of the trainable layers if the training starts from another model. Default: all layers from the start. */
  fineTuning?: FreezingSchedule;
  /** The linear function from which a fresh model starts. Default: the ridge regression of the training patches. */
  linear?: LinearModel;
  /** For a model that reads history: the linear function where it has none. */
  fallback?: LinearModel;
  /** The epoch that is kept and after which the training ends. Default: the best one on the selection patches. */
  lastEpoch?: number;
  /** File in which the state of the training is saved, and from which it resumes. `task` identifies everything that affects the result. */
  checkpoint?: { path: string; task: string; everySeconds?: number };
}

export interface TrainOptions extends FitOptions {
  /** Scores the trained model on entire tiles, if a patch is an image. Default: no such scores. */
  scoreTile?: ScoreTile;
  /** For a model that reads history: its baselines. */
  ofHistory?: HistoryBaselines;
}

/** The caller must dispose the model. */
export interface TrainResult extends Omit<TrainedCell, 'files' | 'epochs' | 'bytesRead'> {
  model: LayersModel;
}

/** Patches that a training reads. */
export interface TrainingSets extends Pick<TrainValidationPatches, 'train' | 'selection'> {
  /** Groups of sets. The mean of their errors is the validation loss of an epoch. */
  validation: Patches[][];
}

/** The errors of the groups of validation sets, as the losses of an epoch have them. */
export const lossesOf = (groups: number[]): Pick<EpochLosses, 'validation' | 'groups'> => ({
  validation: meanOf(groups),
  ...(groups.length > 1 && { groups }),
});

export const groupErrors = ({ validation, groups = [validation] }: EpochLosses): number[] => groups;

/** The caller must dispose the model. */
interface Fit extends Pick<TrainResult, 'losses' | 'bestEpoch' | 'start'> {
  model: LayersModel;
  /** The linear function from which a fresh model starts. */
  linear?: LinearModel;
}

/**
 * Fits a model, fresh or from the model of another cell, with Adam, on shuffled patches that are rotated and mirrored at random. Keeps
 * the weights of the epoch with the lowest loss on the selection patches; the validation patches affect no choice. The same seed, data,
 * parents, engine and number of threads give the same weights, bit for bit, even after a resume from a checkpoint. Throws
 * TW_TRAIN_DIVERGED.
 */
export async function fitModel(
  tf: Tf,
  spec: ModelSpec,
  { train, selection, validation }: TrainingSets,
  {
    epochs = spec.epochs,
    patience,
    seed,
    onEpoch,
    start: from,
    fineTuning = 'all',
    linear: given,
    fallback,
    lastEpoch,
    checkpoint,
  }: FitOptions,
): Promise<Fit> {
  const linear = given ?? (startsWithLinearFit(spec) ? ridge(initialFitStatistics(train)) : undefined);
  const learner = createLearner(tf, spec, seed, { linear, fallback });
  const { model } = learner;
  const best = new WeightsSnapshot(tf, model);
  try {
    const headEpochsOf = (start?: WarmStartResult) =>
      start?.parent ? headOnlyEpochs(fineTuning, epochs) : 0;
    const freezeLayers = (start: WarmStartResult, epochsDone: number) => {
      if (fineTuning === 'all') return;
      const headEpochs = headEpochsOf(start);
      learner.setTrainableLayers(
        headEpochs > 0 && epochsDone <= headEpochs ? headLayerNames(spec, model) : undefined,
      );
    };
    const found =
      checkpoint &&
      (await findCheckpoint(checkpoint.path, checkpoint.task, ({ start, losses }) => {
        if (start) freezeLayers(start, losses.length);
        return [...learner.stateVariables(), ...best.variables];
      }));
    found?.restore(tf);
    const resumed = found?.state;
    const start = resumed ? resumed.start : from && (await warmStart(tf, model, { train, selection }, from));
    if (!resumed && start) freezeLayers(start, 0);
    if (!resumed) best.save();
    const initial = resumed ? resumed.initial : selection && meanSquaredError(tf, model, selection);
    const headEpochs = headEpochsOf(start);
    const random = randomStream(seed);
    if (resumed) random.state = resumed.random;
    const predict = (set: Patches) => predictPatches(tf, model, set);
    const losses = resumed?.losses ?? [];
    let step = resumed?.step ?? 0;
    let savedAt = performance.now();
    const stepsPerEpoch = Math.ceil(train.count / spec.batchSize);
    const steps = epochs * stepsPerEpoch;
    for (let epoch = losses.length + 1; epoch <= epochs; epoch++) {
      if (headEpochs > 0 && epoch === headEpochs + 1) learner.setTrainableLayers();
      const [since, until] = epoch > headEpochs ? [headEpochs, epochs] : [0, headEpochs];
      const phaseStart = since * stepsPerEpoch;
      const warmUp = start?.parent ? WARMUP_FRACTION * (until - since) * stepsPerEpoch : 0;
      const order = shuffledOrder(train.count, random.next);
      let sum = 0;
      for (let from = 0; from < train.count; from += spec.batchSize) {
        const batch = augmentedBatch(tf, train, order.subarray(from, from + spec.batchSize), random.next);
        const ramp = Math.min(1, (step - phaseStart + 1) / (warmUp + 1));
        const learningRate = ramp * cosineLearningRate(spec, step, steps);
        step++;
        const loss = await learner
          .step(batch, { learningRate, step: step - phaseStart })
          .finally(() => tf.dispose(Object.values(batch)));
        if (!Number.isFinite(loss)) throw diverged(epoch);
        sum += batch.size * loss;
      }
      const scored = lossesOf(validation.map((sets) => meanError(sets, predict)));
      // The loss of a step belongs to the weights before it.
      if (!Number.isFinite(scored.validation)) throw diverged(epoch);
      losses.push({
        epoch,
        train: sum / train.count,
        ...scored,
        ...(selection && { selection: meanSquaredError(tf, model, selection) }),
      });
      const { isKept, isLast } = stateAfter(losses, initial, { epochs, patience, lastEpoch });
      if (isKept) best.save();
      if (checkpoint && !isLast) {
        const { path, task, everySeconds = CHECKPOINT_INTERVAL_S } = checkpoint;
        if (performance.now() - savedAt >= 1000 * everySeconds) {
          const state = { task, losses, initial, start, random: random.state, step };
          await writeTrainingCheckpoint(path, state, [...learner.stateVariables(), ...best.variables]);
          savedAt = performance.now();
        }
      }
      await onEpoch?.(losses.at(-1)!);
      if (isLast) break;
    }
    best.restore();
    return {
      model,
      linear,
      losses,
      bestEpoch: lastEpoch ?? bestEpoch(losses, initial),
      ...(start && { start }),
    };
  } catch (error) {
    model.dispose();
    throw error;
  } finally {
    best.dispose();
    learner.dispose();
  }
}

/** Fits a model as `fitModel` does, and scores it. Throws TW_TRAIN_DIVERGED. */
export async function trainModel(
  tf: Tf,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  { scoreTile, ofHistory, ...options }: TrainOptions,
): Promise<TrainResult> {
  const started = performance.now();
  const { train, selection, validation } = dataset;
  const sets = { train, selection, validation: [[validation]] };
  const { model, linear, ...fit } = await fitModel(tf, spec, sets, options);
  try {
    const choice =
      selection && linear && !spec.history
        ? serveSimplest(
            tf,
            model,
            { train, selection },
            [candidate('own', meanSquaredError(tf, model, selection))],
            linear,
          )
        : undefined;
    const { report, held, spread } = await reportOf(tf, model, spec, dataset, scoreTile, ofHistory);
    if (options.checkpoint) await rm(options.checkpoint.path, { force: true });
    return {
      ...report,
      ...fit,
      model,
      ...(choice && { choice }),
      ...(spec.target.kind === 'mean' && { predictions: held }),
      spread,
      seconds: (performance.now() - started) / 1000,
    };
  } catch (error) {
    model.dispose();
    throw error;
  }
}

/** A candidate with one group. */
export const candidate = (name: CandidateName, error: number): Candidate => ({
  name,
  error,
  errors: [error],
});

/**
 * Chooses on the selection patches between the mean of the training, the ridge regression `linear` and a network, for a place without a
 * history. A network serves only if it is better than both; otherwise `model` becomes linear. `networks`: the simplest first.
 */
export function serveSimplest(
  tf: Tf,
  model: LayersModel,
  { train, selection }: { train: Patches; selection: Patches },
  networks: Candidate[],
  linear: LinearModel,
): ModelChoice {
  const { x, y, count } = sufficientStatistics(filledOnly(train));
  const mean = { weights: y.map(() => x.map(() => 0)), bias: y.map((sum) => sum / count) };
  const candidates = [
    candidate('mean', meanError([selection], linearPredictor(mean))),
    candidate('ridge', meanError([selection], linearPredictor(linear))),
    ...networks,
  ];
  const { name } = simplestCandidate(candidates);
  if (name === 'mean' || name === 'ridge') serveLinear(tf, model, name === 'mean' ? mean : linear);
  return { serves: name, candidates };
}

/** Returns a learner with a fresh model. */
export function createLearner(
  tf: Tf,
  spec: ModelSpec,
  seed: number,
  {
    linear,
    fallback,
    statistics = 'batch',
  }: { linear?: LinearModel; fallback?: LinearModel; statistics?: BatchNormStatistics } = {},
): Learner {
  const model = buildModel(tf, spec, seed, linear, fallback);
  return spec.loss === 'adversarial'
    ? ganLearner(tf, model, buildDiscriminator(tf, spec.inputs.length, seed))
    : regressionLearner(tf, model, statistics);
}
