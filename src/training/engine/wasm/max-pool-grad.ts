import type { KernelConfig, MaxPoolGradAttrs, MaxPoolGradInputs } from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';
import { floats, wasmKernel, zeros } from './kernel.js';
import type { Loops } from './loops.js';

/**
 * Gradient of max pooling: each output's gradient goes to the first maximum of its window.
 *
 * The stock kernel starts its search just above zero, so a window without a positive value (after leaky ReLU, tanh or
 * batch normalisation) sends its gradient to the wrong pixel, silently.
 */
export function maxPoolGrad(tf: Tf, loops: Loops): KernelConfig {
  return wasmKernel<MaxPoolGradInputs, MaxPoolGradAttrs>(
    tf.MaxPoolGrad,
    ({ inputs: { input, dy }, attrs, backend }) => {
      const { filterSize, strides, pad, dimRoundingMode } = attrs;
      const shape = input.shape as [number, number, number, number];
      const pool = tf.backend_util.computePool2DInfo(shape, filterSize, strides, 1, pad, dimRoundingMode);
      const dx = zeros(backend, shape);
      const geometry = Int32Array.of(
        ...[...shape, pool.outHeight, pool.outWidth, pool.filterHeight, pool.filterWidth],
        ...[pool.strideHeight, pool.strideWidth, pool.padInfo.top, pool.padInfo.left],
      );
      loops.maxPoolGradient(geometry, floats(backend, input), floats(backend, dy), dx.clear());
      return dx.tensor;
    },
  );
}
