/**
 * Extends the tfjs WASM backend (4.22) for training. The stock backend lacks gradients, and its gradient of max pooling is wrong. The
 * kernels of this folder add and replace them with primitives on the heap of the backend, so that no tensor is copied.
 */
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { replaceConvolutionOfLayers } from '../tfjs-extensions/index.js';
import { registerAdamKernel } from './adam-kernel.js';
import { registerBatchNormKernels } from './batch-norm-kernels.js';
import { registerBiasAddKernel } from './bias-add-kernel.js';
import { registerCopyKernels } from './concat-split-kernels.js';
import { registerConvolutionKernels } from './conv2d-kernels.js';
import { registerDepthwiseGradientKernels } from './depthwise-gradient-kernels.js';
import { registerIdentityKernels } from './identity-cast-kernels.js';
import { registerMatMulKernels } from './mat-mul-kernels.js';
import { registerPoolKernels } from './pool-kernels.js';
import { registerReluKernels } from './relu-kernels.js';
import { registerReductionKernels } from './sum-mean-kernels.js';

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
