import type { KernelConfig, TensorInfo } from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import { ADAM_KERNEL, type AdamHyperparameters } from '../tfjs-extensions/index.js';
import { float32View, wasmKernel } from './wasm-kernel.js';

type Inputs = Record<'variable' | 'gradient' | 'first' | 'second', TensorInfo>;

/** One step of Adam for one variable in one pass. */
export function adamKernel(primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<Inputs, AdamHyperparameters>(
    ADAM_KERNEL,
    ({ inputs: { variable, gradient, first, second }, attrs, backend }) => {
      const outputs = [variable, first, second].map(({ shape }) => backend.makeOutput(shape, 'float32'));
      const { beta1, beta2, decay, rate, epsilon } = attrs;
      const [w, g, m, v] = [variable, gradient, first, second].map((one) => float32View(backend, one));
      const [toW, toM, toV] = outputs.map((one) => float32View(backend, one));
      primitives.adam(w.length, beta1, beta2, decay, rate, epsilon, w, g, m, v, toW, toM, toV);
      return outputs;
    },
  );
}
