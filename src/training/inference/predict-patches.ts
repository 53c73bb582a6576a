/** What a model says of patches. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { countingPairs } from '../evaluation/evaluate.js';
import { metricsOf } from '../evaluation/metrics.js';
import { inputBatches } from '../patches/batches.js';
import type { PatchSet } from '../patches/patches.js';

/** Pixels of patches that go through a model at once where it does not learn. */
const MOST_PIXELS = 2 ** 16;

export function patchesAtOnce({ size }: PatchSet): number {
  return Math.max(1, Math.floor(MOST_PIXELS / size ** 2));
}

/** The model's output for each patch, in the shape of the targets. */
export function predict(tf: Tf, model: LayersModel, patches: PatchSet): Float32Array {
  const predicted = new Float32Array(patches.targets.length);
  const values = patches.targets.length / patches.count;
  for (const { from, tensor } of inputBatches(tf, patches, patchesAtOnce(patches))) {
    predicted.set(outputOf(tf, model, tensor), from * values);
    tensor.dispose();
  }
  return predicted;
}

/** Values of the model's first output. */
export function outputOf(tf: Tf, model: LayersModel, input: Tensor): Float32Array {
  const output = tf.tidy(() => {
    const outputs = model.apply(input, { training: false }) as Tensor | Tensor[];
    return Array.isArray(outputs) ? outputs[0] : outputs;
  });
  try {
    // Outside of tidy, which would look for tensors in each of the values.
    return output.dataSync<'float32'>();
  } finally {
    output.dispose();
  }
}

/** Over all that counts. */
export function meanSquaredError(tf: Tf, model: LayersModel, patches: PatchSet): number {
  return metricsOf(countingPairs(patches, predict(tf, model, patches))).mse;
}
