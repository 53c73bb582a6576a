/** Trains one model on one place. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { randomStream, shuffledOrder } from '../../random.js';
import { diverged } from '../errors.js';
import { type Baselines, type LinearFit, ridge, startSums } from '../evaluation/baselines.js';
import { type DisplayRange, displayRange } from '../evaluation/display-range.js';
import { baselinesOf, countingPairs, evaluate } from '../evaluation/evaluate.js';
import {
  type EpochLoss,
  type ModelMetrics,
  type Predictions,
  type Spread,
  spreadOf,
  type TileScore,
} from '../evaluation/metrics.js';
import { meanSquaredError, predict } from '../inference/predict-patches.js';
import { buildModel } from '../models/build-model.js';
import { beginsWithLine, type ModelSpec } from '../models/model-spec.js';
import { buildDiscriminator } from '../models/patchgan-discriminator.js';
import { batchOf } from '../patches/batches.js';
import { filledOnly, type PatchDataset, type PatchSet } from '../patches/patches.js';
import { type Start, type StartTask, startFrom } from '../transfer/warm-start.js';
import { readCheckpoint, removeCheckpoint, writeCheckpoint } from './checkpoint.js';
import { bestEpoch, hasStalled, WeightsCopy } from './early-stopping.js';
import { adversarialLearner } from './gan-learner.js';
import { type FineTuning, headEpochs, headOf } from './layer-freezing.js';
import type { Learner } from './learner.js';
import { regressionLearner } from './regression-learner.js';

export interface TrainOptions {
  /** Passes over the training patches. Default: the model's. */
  epochs?: number;
  /** Stops if the selection loss has not improved for this number of epochs. Default: all epochs are run. */
  patience?: number;
  seed: number;
  /** Waited for. */
  onEpoch?: (loss: EpochLoss) => void | Promise<void>;
  /** Models of other places that it may start from. Default: it starts fresh. */
  start?: StartTask;
  /** Which layers learn when, of a model that starts from another. Default: all from the start. */
  fineTuning?: FineTuning;
  /** Scores the trained model on whole tiles, if it makes images. Default: it has no such scores. */
  scoreTile?: (model: LayersModel, range: DisplayRange) => Promise<TileScore>;
  /** Where to keep the training as it stands, and to go on from; `task` names all that shapes the result. */
  checkpoint?: { path: string; task: string; everySeconds?: number };
}

export interface TrainResult {
  /** Dispose it when done. */
  model: LayersModel;
  losses: EpochLoss[];
  /** The epoch whose weights are kept; 0 if none was better than the start. */
  bestEpoch: number;
  /** Where there were models that it may have started from. */
  start?: Start;
  metrics: ModelMetrics;
  /** With which images are scored; absent if a patch has one value. */
  displayRange?: DisplayRange;
  /** Of the validation patches, where a patch has one value. */
  predictions?: Predictions;
  /** Of the true values in the validation patches. */
  spread: Spread;
  /** On the same validation patches. */
  baseline: Baselines;
  seconds: number;
}

/**
 * Learning rate warm-up of a model that starts from another: the share of the steps, of each part of its schedule, over which the rate
 * rises to that of other models. A high rate from the start would undo what the parent has learned.
 */
const WARM_UP = 1 / 2;
/** Seconds of training that a kill may cost at most, but for the epoch that runs. */
export const CHECKPOINT_SECONDS = 5;

/**
 * Trains a model, fresh or from one of another place, with Adam, on shuffled patches that are turned and mirrored at random. Keeps the
 * weights of the epoch with the lowest loss on the selection patches; the validation patches choose nothing. Same seed, data, parents, engine and threads: same weights, bit for bit, also when it went on from a checkpoint. Throws
 * TW_TRAIN_DIVERGED.
 */
export async function trainModel(
  tf: Tf,
  spec: ModelSpec,
  dataset: PatchDataset,
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
  const learner = learnerOf(tf, spec, seed, beginsWithLine(spec) ? ridge(startSums(train)) : undefined);
  const best = new WeightsCopy(tf, learner.model);
  try {
    // Of these epochs the last layers learn alone.
    const headAloneOf = (start?: Start) => (start?.parent ? headEpochs(fineTuning, epochs) : 0);
    const holdLayers = (start: Start, epochsDone: number) => {
      if (fineTuning === 'all') return;
      const headAlone = headAloneOf(start);
      learner.learn(headAlone > 0 && epochsDone <= headAlone ? headOf(spec, learner.model) : undefined);
    };
    const kept =
      checkpoint &&
      (await readCheckpoint(tf, checkpoint.path, checkpoint.task, ({ start, losses }) => {
        if (start) holdLayers(start, losses.length);
        return [...learner.state(), ...best.variables];
      }));
    const start = kept ? kept.start : from && (await startFrom(tf, learner.model, dataset, from));
    if (!kept && start) holdLayers(start, 0);
    if (!kept) best.keep();
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
      if (headAlone > 0 && epoch === headAlone + 1) learner.learn();
      const [since, until] = epoch > headAlone ? [headAlone, epochs] : [0, headAlone];
      const learningSince = since * stepsAnEpoch;
      const warmUp = start?.parent ? WARM_UP * (until - since) * stepsAnEpoch : 0;
      const order = shuffledOrder(train.count, random.next);
      let sum = 0;
      for (let from = 0; from < train.count; from += spec.batchSize) {
        const batch = batchOf(tf, train, order.subarray(from, from + spec.batchSize), random.next);
        const ramp = Math.min(1, (step - learningSince + 1) / (warmUp + 1));
        const rate = ramp * rateAt(spec, step, steps);
        step++;
        const loss = await learner
          .step(batch, { rate, step: step - learningSince })
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
      if (bestEpoch(losses, initial) === epoch) best.keep();
      const isLast = epoch === epochs || hasStalled(losses, initial, patience);
      if (checkpoint && !isLast) {
        const { path, task, everySeconds = CHECKPOINT_SECONDS } = checkpoint;
        if (performance.now() - keptAt >= 1000 * everySeconds) {
          const state = { task, losses, initial, start, random: random.state, step };
          await writeCheckpoint(path, state, [...learner.state(), ...best.variables]);
          keptAt = performance.now();
        }
      }
      await onEpoch?.(losses.at(-1)!);
      if (isLast) break;
    }
    best.restore();
    const predicted = predict(tf, learner.model, validation);
    const range = displayRange(train);
    const score = (patches: PatchSet, values: Float32Array) => evaluate(patches, values, range);
    const tile = range && (await scoreTile?.(learner.model, range));
    const held = countingPairs(validation, predicted);
    const result = {
      model: learner.model,
      losses,
      bestEpoch: bestEpoch(losses, initial),
      ...(start && { start }),
      metrics: {
        train: score(filledOnly(train), predict(tf, learner.model, train)),
        validation: score(validation, predicted),
        ...(tile && { tile }),
      },
      ...(range && { displayRange: range }),
      ...(spec.target.kind === 'mean' && { predictions: held }),
      spread: spreadOf(held.truth),
      baseline: baselinesOf(spec.target, dataset, range),
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
export function learnerOf(tf: Tf, spec: ModelSpec, seed: number, straight?: LinearFit): Learner {
  const model = buildModel(tf, spec, seed, straight);
  return spec.loss === 'adversarial'
    ? adversarialLearner(tf, model, buildDiscriminator(tf, spec.inputs.length, seed))
    : regressionLearner(tf, model);
}

/** Size of a step, from 0, of so many: it falls to zero along half a cosine. */
export function rateAt({ learningRate }: ModelSpec, step: number, steps: number): number {
  return 0.5 * learningRate * (1 + Math.cos((Math.PI * step) / steps));
}
