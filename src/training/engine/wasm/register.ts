/**
 * Makes the tfjs WASM backend (4.22) fit for training. Stock, it lacks gradients, and that of max pooling is wrong; the
 * kernels of this folder add and replace them. Each is written in terms of fast kernels that exist, or as a loop over the
 * WASM heap.
 */
import type { Tf } from '../tf.js';
import { batchMatMul } from './batch-mat-mul.js';
import { conv2dBackpropFilter } from './conv2d-backprop-filter.js';
import { conv2dBackpropInput } from './conv2d-backprop-input.js';
import { conv2dGrad } from './conv2d-grad.js';
import { depthwiseConv2dBackpropFilter } from './depthwise-conv2d-backprop-filter.js';
import { depthwiseConv2dBackpropInput } from './depthwise-conv2d-backprop-input.js';
import { fusedBatchNormGrad } from './fused-batch-norm-grad.js';
import { identity } from './identity.js';
import { replaceKernel } from './kernel.js';
import { maxPoolGrad } from './max-pool-grad.js';
import { unsortedSegmentSum } from './unsorted-segment-sum.js';

/** Call once for a `tf`, after the WASM backend's module was loaded. */
export function registerTrainingKernels(tf: Tf): void {
  tf.registerKernel(conv2dBackpropFilter(tf));
  tf.registerKernel(depthwiseConv2dBackpropFilter(tf));
  tf.registerKernel(depthwiseConv2dBackpropInput(tf));
  tf.registerKernel(unsortedSegmentSum(tf));
  replaceKernel(tf, tf.Identity, () => identity(tf));
  replaceKernel(tf, tf.MaxPoolGrad, () => maxPoolGrad(tf));
  replaceKernel(tf, tf.BatchMatMul, (stock) => batchMatMul(tf, stock));
  replaceKernel(tf, tf.Conv2DBackpropInput, (stock) => conv2dBackpropInput(tf, stock));
  tf.unregisterGradient(tf.Conv2D);
  tf.registerGradient(conv2dGrad(tf));
  const batchNorm = tf.getGradient(tf.FusedBatchNorm);
  tf.unregisterGradient(tf.FusedBatchNorm);
  tf.registerGradient(fusedBatchNormGrad(tf, batchNorm));
}
