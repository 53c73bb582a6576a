/** Pooling and its gradients. */
import type {
  AvgPoolGradAttrs,
  AvgPoolGradInputs,
  KernelConfig,
  MaxPoolAttrs,
  MaxPoolGradAttrs,
  MaxPoolGradInputs,
  MaxPoolInputs,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { float32View, wasmKernel } from './wasm-kernel.js';

/**
 * The stock kernels replace NaN by other values, which hides a model that has diverged. Types other than float32 are delegated to them.
 */
export function maxPoolKernel(tf: Tf, primitives: ComputePrimitives, stock: KernelConfig): KernelConfig {
  return pool(tf, tf.MaxPool, stock, primitives.maxPool);
}

export function avgPoolKernel(tf: Tf, primitives: ComputePrimitives, stock: KernelConfig): KernelConfig {
  return pool(tf, tf.AvgPool, stock, primitives.avgPool);
}

function pool(
  tf: Tf,
  name: string,
  stock: KernelConfig,
  compute: ComputePrimitives['maxPool'],
): KernelConfig {
  return wasmKernel<MaxPoolInputs, MaxPoolAttrs>(name, ({ inputs: { x }, attrs, backend }) => {
    if (x.dtype !== 'float32')
      return stock.kernelFunc({ inputs: { x }, attrs: { ...attrs }, backend }) as TensorInfo;
    const geometry = geometryOf(tf, x.shape, attrs);
    const [batch, , , channels, rows, columns] = geometry;
    const y = backend.makeOutput([batch, rows, columns, channels], 'float32');
    if (y.shape.includes(0)) return y;
    compute(geometry, float32View(backend, x), float32View(backend, y));
    return y;
  });
}

/**
 * The gradient of each output goes to the first maximum of its window.
 *
 * The stock kernel starts its search just above zero. So if a window has no positive value (after leaky ReLU, tanh or batch
 * normalisation), it silently sends the gradient to the wrong pixel.
 */
export function maxPoolGrad(tf: Tf, primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<MaxPoolGradInputs, MaxPoolGradAttrs>(
    tf.MaxPoolGrad,
    ({ inputs: { input, dy }, attrs, backend }) => {
      const dx = backend.makeOutput(input.shape, 'float32');
      if (input.shape.includes(0)) return dx;
      const geometry = geometryOf(tf, input.shape, attrs);
      const [ofX, ofDy, toDx] = [input, dy, dx].map((one) => float32View(backend, one));
      primitives.maxPoolGradient(geometry, ofX, ofDy, toDx);
      return dx;
    },
  );
}

/**
 * Distributes the gradient of each output over the pixels of its window that are inside the image. The stock kernel takes twenty times as
 * long.
 */
export function avgPoolGrad(tf: Tf, primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<AvgPoolGradInputs, AvgPoolGradAttrs>(
    tf.AvgPoolGrad,
    ({ inputs: { input, dy }, attrs, backend }) => {
      const dx = backend.makeOutput(input.shape, 'float32');
      if (input.shape.includes(0)) return dx;
      primitives.avgPoolGradient(
        geometryOf(tf, input.shape, attrs),
        float32View(backend, dy),
        float32View(backend, dx),
      );
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
  const pool = tf.backend_util.computePool2DInfo(shape, filterSize, strides, 1, pad, attrs.dimRoundingMode);
  const { top, bottom, left, right } = pool.padInfo;
  if (Math.max(top, bottom) >= pool.filterHeight || Math.max(left, right) >= pool.filterWidth)
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
