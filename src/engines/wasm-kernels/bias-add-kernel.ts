import type { AddInputs, KernelConfig, TensorInfo } from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { float32View, wasmKernel } from './wasm-kernel.js';

/**
 * Adds a bias to each row in one pass; the stock kernel computes the index of the other operand for each value. Other additions are
 * delegated to `stock`.
 */
export function biasAdd(tf: Tf, primitives: ComputePrimitives, stock: KernelConfig): KernelConfig {
  return wasmKernel<AddInputs, object>(tf.Add, ({ inputs: { a, b }, backend }) => {
    const channels = b.shape[0];
    const isBias =
      [a, b].every(({ dtype }) => dtype === 'float32') &&
      b.shape.length === 1 &&
      a.shape.length > 1 &&
      channels > 0 &&
      a.shape.at(-1) === channels;
    if (!isBias) return stock.kernelFunc({ inputs: { a, b }, attrs: {}, backend }) as TensorInfo;
    const y = backend.makeOutput(a.shape, 'float32');
    const [ofA, ofB, toY] = [a, b, y].map((tensor) => float32View(backend, tensor));
    const [zeros, ones] = [0, 1].map((value) => new Float32Array(channels).fill(value));
    primitives.scaleChannels(toY.length / channels, channels, ofA, zeros, ones, ofB, toY);
    return y;
  });
}
