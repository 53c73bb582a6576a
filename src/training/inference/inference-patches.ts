/** Applies a model to patches. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import { inferenceBatches, type Patches } from '../patches/index.js';

/** Maximum number of pixels in one inference batch. */
const MAX_BATCH_PIXELS = 2 ** 16;

export function inferenceBatchSize({ size }: Patches): number {
  return Math.max(1, Math.floor(MAX_BATCH_PIXELS / size ** 2));
}

/** Returns the output of the model for each patch, in the shape of the targets. */
export function predictPatches(tf: Tf, model: LayersModel, patches: Patches): Float32Array {
  const predicted = new Float32Array(patches.targets.length);
  const values = patches.targets.length / patches.count;
  for (const { from, tensor } of inferenceBatches(tf, patches, inferenceBatchSize(patches))) {
    predicted.set(runModel(tf, model, tensor), from * values);
    tensor.dispose();
  }
  return predicted;
}

/** Returns the values of the first output of the model. */
export function runModel(tf: Tf, model: LayersModel, input: Tensor): Float32Array {
  const output = tf.tidy(() => {
    const outputs = model.apply(input, { training: false }) as Tensor | Tensor[];
    return Array.isArray(outputs) ? outputs[0] : outputs;
  });
  try {
    // Outside of tidy, which would search each value for tensors.
    return output.dataSync<'float32'>();
  } finally {
    output.dispose();
  }
}
