/** Patches as tensors. */
import type { Tensor, Tensor4D } from '@tensorflow/tfjs-core';
import type { Tf } from '../../engines/index.js';
import { applyD4 } from './patch-augmentation.js';
import type { Patches } from './patches.js';

/** Samples of one training step. Shapes as in `Patches`; `counts` and `cloud` have one channel. */
export interface Batch {
  size: number;
  inputs: Tensor4D;
  targets: Tensor;
  counts?: Tensor4D;
  cloud?: Tensor4D;
}

/**
 * Returns the chosen patches, each randomly rotated and mirrored together with its targets and masks. The caller must dispose the
 * tensors.
 */
export function augmentedBatch(tf: Tf, patches: Patches, chosen: Uint32Array, random: () => number): Batch {
  const { size, inputBands, targetBands, targetMask, cloud } = patches;
  const symmetries = Array.from(chosen, () => Math.floor(random() * 8));
  const planes = (values: Float32Array, bands: number) => {
    const length = size * size * bands;
    const transformed = new Float32Array(chosen.length * length);
    chosen.forEach((n, i) => {
      const from = values.subarray(n * length, (n + 1) * length);
      applyD4(from, transformed.subarray(i * length, (i + 1) * length), size, bands, symmetries[i]);
    });
    return tf.tensor4d(transformed, [chosen.length, size, size, bands]);
  };
  return {
    size: chosen.length,
    inputs: planes(patches.inputs, inputBands),
    targets: targetMask
      ? planes(patches.targets, targetBands)
      : tf.tensor2d(
          Float32Array.from(chosen, (n) => patches.targets[n]),
          [chosen.length, 1],
        ),
    ...(targetMask && { counts: planes(targetMask, 1) }),
    ...(cloud && { cloud: planes(cloud, 1) }),
  };
}

/** Yields the inputs of all patches, at most `most` patches at a time. */
export function* inferenceBatches(tf: Tf, { count, size, inputBands, inputs }: Patches, most: number) {
  const length = size * size * inputBands;
  for (let from = 0; from < count; from += most) {
    const to = Math.min(count, from + most);
    const tensor: Tensor4D = tf.tensor4d(inputs.subarray(from * length, to * length), [
      to - from,
      size,
      size,
      inputBands,
    ]);
    yield { from, tensor };
  }
}
