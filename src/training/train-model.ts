/** Trains one model on one place. */
import type { LayersModel, Sequential } from '@tensorflow/tfjs-layers';
import { copyTurned } from './augment.js';
import { ridge, trainingMean } from './baselines.js';
import type { Tf } from './engine/tf.js';
import { type Metrics, meanOf, metricsOf, type Predictions } from './metrics.js';
import { buildModel } from './models/build.js';
import type { ModelSpec } from './models/spec.js';
import { PATCH_VALUES, type PatchDataset, type PatchSet } from './patches.js';
import { randomStream, shuffledOrder } from './random.js';

export interface EpochLoss {
  /** From 1. */
  epoch: number;
  /** Mean over the epoch's batches, while the weights moved. */
  train: number;
  validation: number;
}

export interface TrainOptions {
  /** Default: the model's. All are run; none is chosen by its validation loss. */
  epochs?: number;
  seed: number;
  /** Waited for. */
  onEpoch?: (loss: EpochLoss) => void | Promise<void>;
}

export interface Baselines {
  mean: Metrics;
  linear: Metrics;
}

export interface TrainResult {
  /** Dispose it when done. */
  model: Sequential;
  losses: EpochLoss[];
  metrics: { train: Metrics; validation: Metrics };
  /** Of the validation patches. */
  predictions: Predictions;
  /** On the same validation patches. */
  baseline: Baselines;
  seconds: number;
}

/**
 * Trains a fresh model with Adam for a fixed number of epochs, on shuffled patches that are turned and mirrored at random.
 * Same seed, data, engine and threads: same weights, bit for bit.
 */
export async function trainModel(
  tf: Tf,
  spec: ModelSpec,
  dataset: PatchDataset,
  { epochs = spec.epochs, seed, onEpoch }: TrainOptions,
): Promise<TrainResult> {
  const started = performance.now();
  const { train, validation } = dataset;
  const random = randomStream(seed);
  const model = buildModel(tf, spec, seed, meanOf(train.targets));
  const optimizer = scheduledAdam(tf, spec.learningRate);
  model.compile({ optimizer, loss: spec.loss });
  const losses: EpochLoss[] = [];
  const steps = epochs * Math.ceil(train.count / spec.batchSize);
  let step = 0;
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const order = shuffledOrder(train.count, random);
    let sum = 0;
    for (let from = 0; from < train.count; from += spec.batchSize) {
      const chosen = order.subarray(from, from + spec.batchSize);
      optimizer.setRate(0.5 * spec.learningRate * (1 + Math.cos((Math.PI * step++) / steps)));
      sum += chosen.length * (await trainOnBatch(tf, model, spec, train, chosen, random));
    }
    const { mse } = metricsOf(predict(tf, model, spec, validation));
    losses.push({ epoch, train: sum / train.count, validation: mse });
    await onEpoch?.(losses.at(-1)!);
  }
  optimizer.dispose();
  const predictions = predict(tf, model, spec, validation);
  return {
    model,
    losses,
    metrics: {
      train: metricsOf(predict(tf, model, spec, train)),
      validation: metricsOf(predictions),
    },
    predictions,
    baseline: baselinesOf(dataset),
    seconds: (performance.now() - started) / 1000,
  };
}

export function predict(tf: Tf, model: LayersModel, spec: ModelSpec, patches: PatchSet): Predictions {
  const predicted = tf.tidy(() => {
    const inputs = tf.tensor(patches.inputs, [patches.count, ...spec.inputShape]);
    const output = model.predict(inputs, { batchSize: 256 });
    return (Array.isArray(output) ? output[0] : output).dataSync<'float32'>();
  });
  return { truth: patches.targets, predicted };
}

function baselinesOf({ train, validation }: PatchDataset): Baselines {
  const score = (predicted: Float32Array) => metricsOf({ truth: validation.targets, predicted });
  return { mean: score(trainingMean(train)(validation)), linear: score(ridge(train)(validation)) };
}

async function trainOnBatch(
  tf: Tf,
  model: Sequential,
  spec: ModelSpec,
  patches: PatchSet,
  chosen: Uint32Array,
  random: () => number,
): Promise<number> {
  const values = new Float32Array(chosen.length * PATCH_VALUES);
  chosen.forEach((n, i) => {
    copyTurned(
      patches.inputs.subarray(n * PATCH_VALUES, (n + 1) * PATCH_VALUES),
      values.subarray(i * PATCH_VALUES, (i + 1) * PATCH_VALUES),
      Math.floor(random() * 8),
    );
  });
  const inputs = tf.tensor(values, [chosen.length, ...spec.inputShape]);
  const targets = tf.tensor(
    Float32Array.from(chosen, (n) => patches.targets[n]),
    [chosen.length, 1],
  );
  try {
    return (await model.trainOnBatch(inputs, targets)) as number;
  } finally {
    tf.dispose([inputs, targets]);
  }
}

/** Adam whose step size can follow a schedule. */
function scheduledAdam(tf: Tf, rate: number) {
  class ScheduledAdam extends tf.AdamOptimizer {
    setRate(next: number): void {
      this.learningRate = next;
    }
  }
  return new ScheduledAdam(rate, 0.9, 0.999, tf.backend().epsilon());
}
