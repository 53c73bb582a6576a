/**
 * Functions that tfjs lacks on every backend: gradients of dilated convolutions, a fused Adam step, capture and replay of kernel calls.
 * Invariant: a replay returns the same bits as the plain computation.
 */
export { replaceConvolutionOfLayers } from './conv-layer.js';
export { conv2dGrad, type WithDilations } from './conv2d-grad.js';
export { ADAM_KERNEL, type AdamHyperparameters, adamStep } from './fused-adam.js';
export { type CapturedKernels, captureKernels } from './kernel-capture.js';
export { completeNativeConvolutions } from './native-conv.js';
export { replaceKernel } from './replace-kernel.js';
