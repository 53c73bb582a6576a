/** Batches of patches as tensors, and models applied to them. */
import type { Tensor, Tensor4D } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import type { Patches } from './patches.js';

/**
 * Copies one patch of `size` x `size` pixels, mirrored (bit 2 of `symmetry`) and rotated by quarter turns (bits 0-1). The eight rotations
 * and reflections of a square patch are all valid samples.
 */
export function applyD4(
  from: Float32Array,
  to: Float32Array,
  size: number,
  bands: number,
  symmetry: number,
): void {
  const last = size - 1;
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      let y = row;
      let x = symmetry & 4 ? last - column : column;
      for (let turn = symmetry & 3; turn > 0; turn--) [y, x] = [x, last - y];
      const source = (y * size + x) * bands;
      const target = (row * size + column) * bands;
      for (let b = 0; b < bands; b++) to[target + b] = from[source + b];
    }
  }
}

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

/** Maximum number of pixels in one inference batch. */
const MAX_BATCH_PIXELS = 2 ** 16;

export function inferenceBatchSize({ size }: Patches): number {
  return Math.max(1, Math.floor(MAX_BATCH_PIXELS / size ** 2));
}

/** Returns the output of the model for each patch, in the shape of the targets and within their range. */
export function predictPatches(tf: Tf, model: LayersModel, patches: Patches): Float32Array {
  const predicted = new Float32Array(patches.targets.length);
  const values = patches.targets.length / patches.count;
  for (const { from, tensor } of inferenceBatches(tf, patches, inferenceBatchSize(patches))) {
    predicted.set(runModel(tf, model, tensor), from * values);
    tensor.dispose();
  }
  return bounded(patches, predicted);
}

/** Sets values beyond the range of a set of patches to its ends, in place. NaN stays. */
export function bounded({ range }: Pick<Patches, 'range'>, values: Float32Array): Float32Array {
  if (!range) return values;
  const [low, high] = range;
  for (let i = 0; i < values.length; i++) {
    if (values[i]! < low) values[i] = low;
    else if (values[i]! > high) values[i] = high;
  }
  return values;
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
