/** Fine-tunes a base model on the patches of one cell. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { randomStream, shuffledOrder } from '../../utils/random.js';
import { diverged } from '../errors.js';
import { cosineLearningRate, createLearner } from '../learners/index.js';
import { type ModelSpec, readWeights, setWeights, type WeightValues } from '../models/index.js';
import { augmentedBatch, type Patches } from '../patches/index.js';

/** Factor of the learning rate of a fresh training. Larger steps leave the base model at the cells where they do not help. */
const LEARNING_RATE_FACTOR = 0.2;
/** Fraction of the steps in which the learning rate rises. */
const WARMUP_FRACTION = 0.1;
/** Fraction of the epochs of a fresh training. With the patches of other cells, adaptation takes half of its steps. */
const EPOCHS_FRACTION = 1 / 3;

export const adaptationEpochs = (epochs: number): number => Math.max(1, Math.round(epochs * EPOCHS_FRACTION));

interface FineTuneOptions {
  epochs: number;
  seed: number;
  /** Takes steps as large as those of a fresh training, to learn ground that the base does not know. */
  fullSteps?: boolean;
  /** Called after each epoch with the mean loss of its steps and the current model. */
  onEpoch?: (epoch: number, loss: number, model: LayersModel) => void;
}

/**
 * Returns the weights after some epochs of steps of Adam, by default small ones, that begin at the weights of the base. The patches are
 * shuffled, and rotated and mirrored at random. The same arguments and engine give the same weights, bit for bit. Throws TW_TRAIN_DIVERGED.
 */
export async function fineTuneBase(
  tf: Tf,
  spec: ModelSpec,
  base: WeightValues[],
  patches: Patches,
  { epochs, seed, fullSteps = false, onEpoch }: FineTuneOptions,
): Promise<WeightValues[]> {
  // The few patches of a cell make poor statistics.
  const learner = createLearner(tf, spec, seed, { statistics: 'moving' });
  try {
    setWeights(tf, learner.model, base);
    const random = randomStream(seed);
    const steps = epochs * Math.ceil(patches.count / spec.batchSize);
    const warmUp = WARMUP_FRACTION * steps;
    const factor = fullSteps ? 1 : LEARNING_RATE_FACTOR;
    let step = 0;
    for (let epoch = 1; epoch <= epochs; epoch++) {
      const order = shuffledOrder(patches.count, random.next);
      let sum = 0;
      for (let from = 0; from < patches.count; from += spec.batchSize) {
        const batch = augmentedBatch(tf, patches, order.subarray(from, from + spec.batchSize), random.next);
        const ramp = Math.min(1, (step + 1) / (warmUp + 1));
        const learningRate = factor * ramp * cosineLearningRate(spec, step++, steps);
        const loss = await learner
          .step(batch, { learningRate, step })
          .finally(() => tf.dispose(Object.values(batch)));
        if (!Number.isFinite(loss)) throw diverged(epoch);
        sum += batch.size * loss;
      }
      onEpoch?.(epoch, sum / patches.count, learner.model);
    }
    const tuned = readWeights(learner.model);
    // The loss of a step belongs to the weights before it.
    if (!tuned.every(({ values }) => values.every(Number.isFinite))) throw diverged(epochs);
    return tuned;
  } finally {
    learner.model.dispose();
    learner.dispose();
  }
}
