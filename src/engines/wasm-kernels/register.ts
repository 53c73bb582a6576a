/**
 * Extends the tfjs WASM backend (4.22) for training. The stock backend lacks gradients, and its gradient of max pooling is wrong. The
 * kernels of this folder add and replace them with primitives on the heap of the backend, so that no tensor is copied.
 */
import type { TensorInfo } from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/primitives.js';
import { replaceConvolutionOfLayers } from '../convolutions.js';
import { ADAM_KERNEL, type AdamHyperparameters, type Tf } from '../tfjs.js';
import { registerBatchNormKernels, registerBiasAddKernel, registerReductionKernels } from './batch-norm.js';
import { registerCopyKernels, registerIdentityKernels } from './concat-split.js';
import { registerConvolutionKernels, registerDepthwiseGradientKernels } from './conv2d.js';
import { float32Views, registerWasmKernel } from './kernel.js';
import { registerMatMulKernels } from './mat-mul.js';
import { registerPoolKernels } from './pool.js';
import { registerReluKernels } from './relu.js';

type Inputs = Record<'variable' | 'gradient' | 'first' | 'second', TensorInfo>;

/** One step of Adam for one variable in one pass. */
function registerAdamKernel(tf: Tf, primitives: ComputePrimitives): void {
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

/** Call it once for a `tf`, after the WASM backend has started. */
export function registerTrainingKernels(tf: Tf, primitives: ComputePrimitives): void {
  registerIdentityKernels(tf);
  for (const register of [
    registerConvolutionKernels,
    registerDepthwiseGradientKernels,
    registerMatMulKernels,
    registerPoolKernels,
    registerReluKernels,
    registerBatchNormKernels,
    registerReductionKernels,
    registerCopyKernels,
    registerBiasAddKernel,
    registerAdamKernel,
  ])
    register(tf, primitives);
  replaceConvolutionOfLayers(tf);
}
