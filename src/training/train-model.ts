/** Trains one model on one place. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { adversarialLearner } from './adversarial.js';
import { type Baselines, type LinearFit, ridge, startSums } from './baselines.js';
import { batchOf, inputBatches } from './batch.js';
import { readCheckpoint, removeCheckpoint, writeCheckpoint } from './checkpoint.js';
import type { Tf } from './engine/tf.js';
import { diverged } from './errors.js';
import { baselinesOf, countingPairs, evaluate } from './evaluate.js';
import type { Learner } from './learner.js';
import { type Metrics, metricsOf, type Predictions, type Spread, spreadOf } from './metrics.js';
import { buildModel } from './models/build.js';
import { buildDiscriminator } from './models/discriminator.js';
import type { ModelSpec } from './models/spec.js';
import type { PatchDataset, PatchSet } from './patches.js';
import { randomStream, shuffledOrder } from './random.js';
import { regressionLearner } from './regression.js';

export interface EpochLoss {
  /** From 1. */
  epoch: number;
  /** Mean over the epoch's batches, while the weights moved. */
  train: number;
  /** Mean squared error. */
  validation: number;
}

export interface TrainOptions {
  /** Default: the model's. All are run; none is chosen by its validation loss. */
  epochs?: number;
  seed: number;
  /** Waited for. */
  onEpoch?: (loss: EpochLoss) => void | Promise<void>;
  /** Where to keep the training as it stands, and to go on from; `task` names all that shapes the result. */
  checkpoint?: { path: string; task: string; everySeconds?: number };
}

export interface TrainResult {
  /** Dispose it when done. */
  model: LayersModel;
  losses: EpochLoss[];
  metrics: { train: Metrics; validation: Metrics };
  /** Of the validation patches, where a patch has one value. */
  predictions?: Predictions;
  /** Of the true values in the validation patches. */
  spread: Spread;
  /** On the same validation patches. */
  baseline: Baselines;
  seconds: number;
}

/** Seconds of training that a kill may cost at most, but for the epoch that runs. */
const CHECKPOINT_SECONDS = 5;
const PREDICTED_PIXELS = 2 ** 16;

/**
 * Trains a fresh model with Adam for a fixed number of epochs, on shuffled patches that are turned and mirrored at random.
 * Same seed, data, engine and threads: same weights, bit for bit, also when it went on from a checkpoint. Throws
 * TW_TRAIN_DIVERGED.
 */
export async function trainModel(
  tf: Tf,
  spec: ModelSpec,
  dataset: PatchDataset,
  { epochs = spec.epochs, seed, onEpoch, checkpoint }: TrainOptions,
): Promise<TrainResult> {
  const started = performance.now();
  const { train, validation } = dataset;
  const learner = learnerOf(tf, spec, seed, ridge(startSums(train)));
  const random = randomStream(seed);
  const kept = checkpoint && (await readCheckpoint(tf, checkpoint.path, checkpoint.task, learner.state()));
  if (kept) random.state = kept.random;
  const losses = kept?.losses ?? [];
  let step = kept?.step ?? 0;
  let keptAt = performance.now();
  const steps = epochs * Math.ceil(train.count / spec.batchSize);
  try {
    for (let epoch = losses.length + 1; epoch <= epochs; epoch++) {
      const order = shuffledOrder(train.count, random.next);
      let sum = 0;
      for (let from = 0; from < train.count; from += spec.batchSize) {
        const batch = batchOf(tf, train, order.subarray(from, from + spec.batchSize), random.next);
        const rate = rateAt(spec, step++, steps);
        const loss = await learner
          .step(batch, { rate, step })
          .finally(() => tf.dispose(Object.values(batch)));
        if (!Number.isFinite(loss)) throw diverged(epoch);
        sum += batch.size * loss;
      }
      const { mse } = metricsOf(countingPairs(validation, predict(tf, learner.model, validation)));
      losses.push({ epoch, train: sum / train.count, validation: mse });
      if (checkpoint && epoch < epochs) {
        const { path, task, everySeconds = CHECKPOINT_SECONDS } = checkpoint;
        if (performance.now() - keptAt >= 1000 * everySeconds) {
          await writeCheckpoint(path, { task, losses, random: random.state, step }, learner.state());
          keptAt = performance.now();
        }
      }
      await onEpoch?.(losses.at(-1)!);
    }
    const predicted = predict(tf, learner.model, validation);
    const score = (patches: PatchSet, values: Float32Array) => evaluate(spec.target, patches, values);
    const held = countingPairs(validation, predicted);
    const result = {
      model: learner.model,
      losses,
      metrics: {
        train: score(train, predict(tf, learner.model, train)),
        validation: score(validation, predicted),
      },
      ...(spec.target.kind === 'mean' && { predictions: held }),
      spread: spreadOf(held.truth),
      baseline: baselinesOf(spec.target, dataset),
      seconds: (performance.now() - started) / 1000,
    };
    if (checkpoint) await removeCheckpoint(checkpoint.path);
    return result;
  } catch (error) {
    learner.model.dispose();
    throw error;
  } finally {
    learner.dispose();
  }
}

/** What trains a fresh model of this kind. */
export function learnerOf(tf: Tf, spec: ModelSpec, seed: number, straight: LinearFit): Learner {
  const model = buildModel(tf, spec, seed, straight);
  return spec.loss === 'adversarial'
    ? adversarialLearner(tf, model, buildDiscriminator(tf, spec.inputs.length, seed))
    : regressionLearner(tf, model);
}

/** Size of a step, from 0, of so many: it falls to zero along half a cosine. */
export function rateAt({ learningRate }: ModelSpec, step: number, steps: number): number {
  return 0.5 * learningRate * (1 + Math.cos((Math.PI * step) / steps));
}

/** The model's output for each patch, in the shape of the targets. */
export function predict(tf: Tf, model: LayersModel, patches: PatchSet): Float32Array {
  const predicted = new Float32Array(patches.targets.length);
  const values = patches.targets.length / patches.count;
  const most = Math.max(1, Math.floor(PREDICTED_PIXELS / patches.size ** 2));
  for (const { from, tensor } of inputBatches(tf, patches, most)) {
    const output = tf.tidy(() => {
      const outputs = model.apply(tensor, { training: false }) as Tensor | Tensor[];
      return (Array.isArray(outputs) ? outputs[0] : outputs).dataSync<'float32'>();
    });
    predicted.set(output, from * values);
    tensor.dispose();
  }
  return predicted;
}
