/**
 * Functions that tfjs lacks on every backend: gradients of dilated convolutions, a fused Adam step, capture and replay of kernel calls.
 * Invariant: a replay returns the same bits as the plain computation. Imports files of a folder above (types).
 */

export { replaceGradient, replaceKernel } from './replace-tfjs-kernel.js';
export { replaceConvolutionOfLayers } from './tfjs-conv-layer.js';
export type { WithDilations } from './tfjs-conv2d-grad.js';
export { ADAM_KERNEL, type AdamHyperparameters, adamStep } from './tfjs-fused-adam.js';
export { type CapturedKernels, captureKernels } from './tfjs-kernel-capture.js';
export { completeNativeConvolutions } from './tfjs-native-conv.js';
