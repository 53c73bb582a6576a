/** Trains one model on one place. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { randomStream, shuffledOrder } from '../../random.js';
import { diverged } from '../errors.js';
import { type Baselines, initialFitStatistics, type LinearModel, ridge } from '../evaluation/baselines.js';
import { type DisplayRange, displayRange } from '../evaluation/display-range.js';
import { evaluateBaselines, evaluatePredictions, maskedPairs } from '../evaluation/evaluate.js';
import {
  type EpochLosses,
  type ModelMetrics,
  type Predictions,
  type TargetStatistics,
  type TileScore,
  targetStatistics,
} from '../evaluation/metrics.js';
import { meanSquaredError, predictPatches } from '../inference/predict-patches.js';
import { buildModel } from '../models/build-model.js';
import { type ModelSpec, startsWithLinearFit } from '../models/model-spec.js';
import { buildDiscriminator } from '../models/patchgan-discriminator.js';
import { augmentedBatch } from '../patches/batches.js';
import { filledOnly, type Patches, type TrainValidationPatches } from '../patches/patches.js';
import { type WarmStartOptions, type WarmStartResult, warmStart } from '../transfer/warm-start.js';
import { readCheckpoint, removeCheckpoint, writeTrainingCheckpoint } from './checkpoint.js';
import { bestEpoch, hasStalled, WeightsSnapshot } from './early-stopping.js';
import { ganLearner } from './gan-learner.js';
import { type FreezingSchedule, headLayerNames, headOnlyEpochs } from './layer-freezing.js';
import type { Learner } from './learner.js';
import { regressionLearner } from './regression-learner.js';

export interface TrainOptions {
  /** Passes over the training patches. Default: the model's. */
  epochs?: number;
  /** Stops if the selection loss has not improved for this number of epochs. Default: all epochs are run. */
  patience?: number;
  seed: number;
  /** Waited for. */
  onEpoch?: (loss: EpochLosses) => void | Promise<void>;
  /** Models of other places that it may start from. Default: it starts fresh. */
  start?: WarmStartOptions;
  /** Which layers learn when, of a model that starts from another. Default: all from the start. */
  fineTuning?: FreezingSchedule;
  /** Scores the trained model on whole tiles, if it makes images. Default: it has no such scores. */
  scoreTile?: (model: LayersModel, range: DisplayRange) => Promise<TileScore>;
  /** Where to keep the training as it stands, and to go on from; `task` names all that shapes the result. */
  checkpoint?: { path: string; task: string; everySeconds?: number };
}

export interface TrainResult {
  /** Dispose it when done. */
  model: LayersModel;
  losses: EpochLosses[];
  /** The epoch whose weights are kept; 0 if none was better than the start. */
  bestEpoch: number;
  /** Where there were models that it may have started from. */
  start?: WarmStartResult;
  metrics: ModelMetrics;
  /** With which images are scored; absent if a patch has one value. */
  displayRange?: DisplayRange;
  /** Of the validation patches, where a patch has one value. */
  predictions?: Predictions;
  /** Of the true values in the validation patches. */
  spread: TargetStatistics;
  /** On the same validation patches. */
  baseline: Baselines;
  seconds: number;
}

/**
 * Learning rate warm-up of a model that starts from another: the share of the steps, of each part of its schedule, over which the rate
 * rises to that of other models. A high rate from the start would undo what the parent has learned.
 */
const WARMUP_FRACTION = 1 / 2;
/** Seconds of training that a kill may cost at most, but for the epoch that runs. */
export const CHECKPOINT_INTERVAL_S = 5;

/**
 * Trains a model, fresh or from one of another place, with Adam, on shuffled patches that are turned and mirrored at random. Keeps the
 * weights of the epoch with the lowest loss on the selection patches; the validation patches choose nothing. Same seed, data, parents, engine and threads: same weights, bit for bit, also when it went on from a checkpoint. Throws
 * TW_TRAIN_DIVERGED.
 */
export async function trainModel(
  tf: Tf,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  {
    epochs = spec.epochs,
    patience,
    seed,
    onEpoch,
    start: from,
    fineTuning = 'all',
    scoreTile,
    checkpoint,
  }: TrainOptions,
): Promise<TrainResult> {
  const started = performance.now();
  const { train, selection, validation } = dataset;
  const learner = createLearner(
    tf,
    spec,
    seed,
    startsWithLinearFit(spec) ? ridge(initialFitStatistics(train)) : undefined,
  );
  const best = new WeightsSnapshot(tf, learner.model);
  try {
    // Of these epochs the last layers learn alone.
    const headAloneOf = (start?: WarmStartResult) => (start?.parent ? headOnlyEpochs(fineTuning, epochs) : 0);
    const holdLayers = (start: WarmStartResult, epochsDone: number) => {
      if (fineTuning === 'all') return;
      const headAlone = headAloneOf(start);
      learner.setTrainableLayers(
        headAlone > 0 && epochsDone <= headAlone ? headLayerNames(spec, learner.model) : undefined,
      );
    };
    const kept =
      checkpoint &&
      (await readCheckpoint(tf, checkpoint.path, checkpoint.task, ({ start, losses }) => {
        if (start) holdLayers(start, losses.length);
        return [...learner.stateVariables(), ...best.variables];
      }));
    const start = kept ? kept.start : from && (await warmStart(tf, learner.model, dataset, from));
    if (!kept && start) holdLayers(start, 0);
    if (!kept) best.save();
    const initial = kept ? kept.initial : selection && meanSquaredError(tf, learner.model, selection);
    const headAlone = headAloneOf(start);
    const random = randomStream(seed);
    if (kept) random.state = kept.random;
    const losses = kept?.losses ?? [];
    let step = kept?.step ?? 0;
    let keptAt = performance.now();
    const stepsAnEpoch = Math.ceil(train.count / spec.batchSize);
    const steps = epochs * stepsAnEpoch;
    for (let epoch = losses.length + 1; epoch <= epochs; epoch++) {
      if (headAlone > 0 && epoch === headAlone + 1) learner.setTrainableLayers();
      const [since, until] = epoch > headAlone ? [headAlone, epochs] : [0, headAlone];
      const learningSince = since * stepsAnEpoch;
      const warmUp = start?.parent ? WARMUP_FRACTION * (until - since) * stepsAnEpoch : 0;
      const order = shuffledOrder(train.count, random.next);
      let sum = 0;
      for (let from = 0; from < train.count; from += spec.batchSize) {
        const batch = augmentedBatch(tf, train, order.subarray(from, from + spec.batchSize), random.next);
        const ramp = Math.min(1, (step - learningSince + 1) / (warmUp + 1));
        const learningRate = ramp * cosineLearningRate(spec, step, steps);
        step++;
        const loss = await learner
          .step(batch, { learningRate, step: step - learningSince })
          .finally(() => tf.dispose(Object.values(batch)));
        if (!Number.isFinite(loss)) throw diverged(epoch);
        sum += batch.size * loss;
      }
      const error = meanSquaredError(tf, learner.model, validation);
      // The loss of a step is that of the weights before it.
      if (!Number.isFinite(error)) throw diverged(epoch);
      losses.push({
        ...{ epoch, train: sum / train.count, validation: error },
        ...(selection && { selection: meanSquaredError(tf, learner.model, selection) }),
      });
      if (bestEpoch(losses, initial) === epoch) best.save();
      const isLast = epoch === epochs || hasStalled(losses, initial, patience);
      if (checkpoint && !isLast) {
        const { path, task, everySeconds = CHECKPOINT_INTERVAL_S } = checkpoint;
        if (performance.now() - keptAt >= 1000 * everySeconds) {
          const state = { task, losses, initial, start, random: random.state, step };
          await writeTrainingCheckpoint(path, state, [...learner.stateVariables(), ...best.variables]);
          keptAt = performance.now();
        }
      }
      await onEpoch?.(losses.at(-1)!);
      if (isLast) break;
    }
    best.restore();
    const predicted = predictPatches(tf, learner.model, validation);
    const range = displayRange(train);
    const score = (patches: Patches, values: Float32Array) => evaluatePredictions(patches, values, range);
    const tile = range && (await scoreTile?.(learner.model, range));
    const held = maskedPairs(validation, predicted);
    const result = {
      model: learner.model,
      losses,
      bestEpoch: bestEpoch(losses, initial),
      ...(start && { start }),
      metrics: {
        train: score(filledOnly(train), predictPatches(tf, learner.model, train)),
        validation: score(validation, predicted),
        ...(tile && { tile }),
      },
      ...(range && { displayRange: range }),
      ...(spec.target.kind === 'mean' && { predictions: held }),
      spread: targetStatistics(held.truth),
      baseline: evaluateBaselines(spec.target, dataset, range),
      seconds: (performance.now() - started) / 1000,
    };
    if (checkpoint) await removeCheckpoint(checkpoint.path);
    return result;
  } catch (error) {
    learner.model.dispose();
    throw error;
  } finally {
    best.dispose();
    learner.dispose();
  }
}

/** What trains a fresh model of this kind. */
export function createLearner(tf: Tf, spec: ModelSpec, seed: number, straight?: LinearModel): Learner {
  const model = buildModel(tf, spec, seed, straight);
  return spec.loss === 'adversarial'
    ? ganLearner(tf, model, buildDiscriminator(tf, spec.inputs.length, seed))
    : regressionLearner(tf, model);
}

/** Size of a step, from 0, of so many: it falls to zero along half a cosine. */
export function cosineLearningRate({ learningRate }: ModelSpec, step: number, steps: number): number {
  return 0.5 * learningRate * (1 + Math.cos((Math.PI * step) / steps));
}
