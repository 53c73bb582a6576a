import type { AddInputs, KernelConfig, TensorInfo } from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/compute-primitives.js';
import type { Tf } from '../tfjs.js';
import { float32View, wasmKernel } from './wasm-kernel.js';

/** A bias is added to each row in one pass; the stock kernel works out for each value where the other one lies. The rest stays with it. */
export function biasAdd(tf: Tf, loops: ComputePrimitives, stock: KernelConfig): KernelConfig {
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
    loops.scaleChannels(toY.length / channels, channels, ofA, zeros, ones, ofB, toY);
    return y;
  });
}
