/** Patches as tensors. */
import type { Tensor4D } from '@tensorflow/tfjs-core';
import type { Tf } from '../../engines/index.js';
import type { Batch } from '../loop/learner.js';
import { copyTurned } from './augmentation.js';
import type { PatchSet } from './patches.js';

/** The chosen patches, each turned or mirrored at random, its targets and masks with it. Dispose its tensors. */
export function batchOf(tf: Tf, patches: PatchSet, chosen: Uint32Array, random: () => number): Batch {
  const { size, inputBands, targetBands, counts, cloud } = patches;
  const symmetries = Array.from(chosen, () => Math.floor(random() * 8));
  const planes = (values: Float32Array, bands: number) => {
    const length = size * size * bands;
    const turned = new Float32Array(chosen.length * length);
    chosen.forEach((n, i) => {
      const from = values.subarray(n * length, (n + 1) * length);
      copyTurned(from, turned.subarray(i * length, (i + 1) * length), size, bands, symmetries[i]);
    });
    return tf.tensor4d(turned, [chosen.length, size, size, bands]);
  };
  return {
    size: chosen.length,
    inputs: planes(patches.inputs, inputBands),
    targets: counts
      ? planes(patches.targets, targetBands)
      : tf.tensor2d(
          Float32Array.from(chosen, (n) => patches.targets[n]),
          [chosen.length, 1],
        ),
    ...(counts && { counts: planes(counts, 1) }),
    ...(cloud && { cloud: planes(cloud, 1) }),
  };
}

/** All inputs of a set, `most` patches at a time. */
export function* inputBatches(tf: Tf, { count, size, inputBands, inputs }: PatchSet, most: number) {
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
