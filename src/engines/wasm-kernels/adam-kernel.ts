import type { TensorInfo } from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { ADAM_KERNEL, type AdamHyperparameters } from '../tfjs-extensions/index.js';
import { float32Views, registerWasmKernel } from './wasm-kernel.js';

type Inputs = Record<'variable' | 'gradient' | 'first' | 'second', TensorInfo>;

/** One step of Adam for one variable in one pass. */
export function registerAdamKernel(tf: Tf, primitives: ComputePrimitives): void {
  registerWasmKernel<Inputs, AdamHyperparameters>(tf, ADAM_KERNEL, ({ inputs, attrs, backend }) => {
    const { variable, gradient, first, second } = inputs;
    const outputs = [variable, first, second].map(({ shape }) => backend.makeOutput(shape, 'float32'));
    const { beta1, beta2, decay, rate, epsilon } = attrs;
    const [w, g, m, v, ...results] = float32Views(backend, variable, gradient, first, second, ...outputs);
    const [toW, toM, toV] = results;
    primitives.adam(w.length, beta1, beta2, decay, rate, epsilon, w, g, m, v, toW, toM, toV);
    return outputs;
  });
}
