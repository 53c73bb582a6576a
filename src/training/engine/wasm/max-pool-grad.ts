import type { KernelConfig, MaxPoolGradAttrs, MaxPoolGradInputs } from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';
import { floats, wasmKernel, zeros } from './kernel.js';

/**
 * Gradient of max pooling: each output's gradient goes to the first maximum of its window.
 *
 * The stock kernel starts its search just above zero, so a window without a positive value (after leaky ReLU, tanh or
 * batch normalisation) sends its gradient to the wrong pixel, silently.
 */
export function maxPoolGrad(tf: Tf): KernelConfig {
  return wasmKernel<MaxPoolGradInputs, MaxPoolGradAttrs>(tf.MaxPoolGrad, ({ inputs, attrs, backend }) => {
    const shape = inputs.input.shape as [number, number, number, number];
    const pool = tf.backend_util.computePool2DInfo(
      shape,
      attrs.filterSize,
      attrs.strides,
      1,
      attrs.pad,
      attrs.dimRoundingMode,
    );
    const { batchSize, inHeight, inWidth, inChannels: channels, outHeight, outWidth } = pool;
    const output = zeros(backend, shape);
    const dx = output.clear();
    const x = floats(backend, inputs.input);
    const dy = floats(backend, inputs.dy);

    const largest = new Float32Array(channels);
    const position = new Int32Array(channels);
    let from = 0;
    for (let n = 0; n < batchSize; n++) {
      for (let row = 0; row < outHeight; row++) {
        const top = row * pool.strideHeight - pool.padInfo.top;
        const bottom = Math.min(inHeight, top + pool.filterHeight);
        for (let column = 0; column < outWidth; column++, from += channels) {
          const left = column * pool.strideWidth - pool.padInfo.left;
          const right = Math.min(inWidth, left + pool.filterWidth);
          largest.fill(-Infinity);
          position.fill(-1);
          for (let i = Math.max(0, top); i < bottom; i++) {
            for (let j = Math.max(0, left); j < right; j++) {
              const at = ((n * inHeight + i) * inWidth + j) * channels;
              for (let c = 0; c < channels; c++) {
                const value = x[at + c];
                if (value > largest[c]) {
                  largest[c] = value;
                  position[c] = at + c;
                }
              }
            }
          }
          for (let c = 0; c < channels; c++) {
            const at = position[c];
            if (at >= 0) dx[at] += dy[from + c];
          }
        }
      }
    }
    return output.tensor;
  });
}
