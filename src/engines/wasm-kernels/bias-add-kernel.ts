import type { AddInputs } from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { float32Views, registerWasmKernel } from './wasm-kernel.js';

/**
 * Adds a bias to each row in one pass; the stock kernel computes the index of the other operand for each value, and handles all other
 * additions.
 */
export function registerBiasAddKernel(tf: Tf, primitives: ComputePrimitives): void {
  registerWasmKernel<AddInputs, object>(tf, tf.Add, ({ inputs: { a, b }, backend }) => {
    const channels = b.shape[0];
    const isBias =
      [a, b].every(({ dtype }) => dtype === 'float32') &&
      b.shape.length === 1 &&
      a.shape.length > 1 &&
      channels > 0 &&
      a.shape.at(-1) === channels;
    if (!isBias) return undefined;
    const y = backend.makeOutput(a.shape, 'float32');
    const [ofA, ofB, toY] = float32Views(backend, a, b, y);
    const [zeros, ones] = [0, 1].map((value) => new Float32Array(channels).fill(value));
    primitives.scaleChannels(toY.length / channels, channels, ofA, zeros, ones, ofB, toY);
    return y;
  });
}
