/** Pooling and its gradients. */
import type {
  AvgPoolGradAttrs,
  AvgPoolGradInputs,
  MaxPoolAttrs,
  MaxPoolGradAttrs,
  MaxPoolInputs,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/primitives.js';
import { explicitPadding } from '../convolutions.js';
import type { Tf } from '../tfjs.js';
import { float32Views, registerWasmKernel } from './kernel.js';

/**
 * The stock kernels replace NaN by other values, which hides a model that has diverged. Types other than float32 are delegated to them.
 *
 * The gradient of each maximum goes to the first maximum of its window. The stock kernel starts its search just above zero. So if a window
 * has no positive value (after leaky ReLU, tanh or batch normalisation), it silently sends the gradient to the wrong pixel.
 *
 * The gradient of each mean is distributed over the pixels of its window that are inside the image. The stock kernel takes twenty times
 * as long.
 */
export function registerPoolKernels(tf: Tf, primitives: ComputePrimitives): void {
  const { maxPool, avgPool, maxPoolGradient, avgPoolGradient } = primitives;
  for (const [name, compute] of [
    [tf.MaxPool, maxPool],
    [tf.AvgPool, avgPool],
  ] as const)
    registerWasmKernel<MaxPoolInputs, MaxPoolAttrs>(tf, name, ({ inputs: { x }, attrs, backend }) => {
      if (x.dtype !== 'float32') return undefined;
      const geometry = geometryOf(tf, x.shape, attrs);
      const [batch, , , channels, rows, columns] = geometry;
      const y = backend.makeOutput([batch, rows, columns, channels], 'float32');
      const [ofX, toY] = float32Views(backend, x, y);
      if (toY.length > 0) compute(geometry, ofX, toY);
      return y;
    });
  const gradients: Record<string, ComputePrimitives['maxPoolGradient']> = {
    [tf.MaxPoolGrad]: maxPoolGradient,
    [tf.AvgPoolGrad]: (geometry, _x, dy, dx) => avgPoolGradient(geometry, dy, dx),
  };
  for (const [name, compute] of Object.entries(gradients))
    registerWasmKernel<AvgPoolGradInputs, MaxPoolGradAttrs>(
      tf,
      name,
      ({ inputs: { input, dy }, attrs, backend }) => {
        const dx = backend.makeOutput(input.shape, 'float32');
        const [ofX, ofDy, toDx] = float32Views(backend, input, dy, dx);
        if (toDx.length > 0) compute(geometryOf(tf, input.shape, attrs), ofX, ofDy, toDx);
        return dx;
      },
    );
}

function geometryOf(
  tf: Tf,
  inputShape: number[],
  { filterSize, strides, pad, ...attrs }: AvgPoolGradAttrs & Partial<MaxPoolGradAttrs>,
): Int32Array {
  const shape = inputShape as [number, number, number, number];
  const padding = explicitPadding(pad);
  const pool = tf.backend_util.computePool2DInfo(
    shape,
    filterSize,
    strides,
    1,
    padding,
    attrs.dimRoundingMode,
  );
  const { top, left } = pool.padInfo;
  if (Math.min(pool.outHeight, pool.outWidth) < 1)
    throw new Error('pooling by windows that are larger than the padded image is not supported');
  const lastRow = (pool.outHeight - 1) * pool.strideHeight - top;
  const lastColumn = (pool.outWidth - 1) * pool.strideWidth - left;
  const startInside = lastRow < pool.inHeight && lastColumn < pool.inWidth;
  if (Math.min(top, left) < 0 || top >= pool.filterHeight || left >= pool.filterWidth || !startInside)
    throw new Error('pooling by windows that may lie outside of the image is not supported');
  return Int32Array.of(
    ...shape,
    pool.outHeight,
    pool.outWidth,
    pool.filterHeight,
    pool.filterWidth,
    pool.strideHeight,
    pool.strideWidth,
    top,
    left,
  );
}
