/**
 * Puts oneDNN under the tfjs WASM backend. It works on the heap of the backend, so that no tensor is copied; every other
 * operation stays with WASM.
 */
import type { Tf } from '../tf.js';
import { replaceKernel } from '../wasm/kernel.js';
import type { OneDnn } from './addon.js';
import { batchNormSums, fusedBatchNorm, fusedBatchNormGrad, scaledChannels } from './batch-norm.js';
import { concat, splitV } from './columns.js';
import { conv2d, conv2dBackpropFilter, conv2dBackpropInput, fusedConv2d } from './conv2d.js';
import { batchMatMul, fusedMatMul } from './mat-mul.js';
import { maxPoolGrad } from './max-pool-grad.js';
import { leakyRelu, leakyReluGrad, relu, reluGradient } from './relu.js';
import { mean, sum } from './sums.js';

/** Call once for a `tf`, after `registerTrainingKernels`. */
export function registerOneDnnKernels(tf: Tf, dnn: OneDnn): void {
  replaceKernel(tf, tf.Conv2D, () => conv2d(tf, dnn));
  replaceKernel(tf, tf.FusedConv2D, () => fusedConv2d(tf, dnn));
  replaceKernel(tf, tf.Conv2DBackpropInput, () => conv2dBackpropInput(tf, dnn));
  replaceKernel(tf, tf.Conv2DBackpropFilter, () => conv2dBackpropFilter(tf, dnn));
  replaceKernel(tf, tf.BatchMatMul, (stock) => batchMatMul(tf, dnn, stock));
  replaceKernel(tf, tf._FusedMatMul, (stock) => fusedMatMul(tf, dnn, stock));
  replaceKernel(tf, tf.MaxPoolGrad, () => maxPoolGrad(tf, dnn));
  replaceKernel(tf, tf.Sum, (stock) => sum(tf, dnn, stock));
  replaceKernel(tf, tf.Concat, (stock) => concat(tf, dnn, stock));
  replaceKernel(tf, tf.SplitV, (stock) => splitV(tf, dnn, stock));
  replaceKernel(tf, tf.Relu, (stock) => relu(tf, dnn, stock));
  replaceKernel(tf, tf.LeakyRelu, (stock) => leakyRelu(tf, dnn, stock));
  tf.registerKernel(leakyReluGrad(dnn));
  replaceKernel(tf, tf.FusedBatchNorm, (stock) => fusedBatchNorm(tf, dnn, stock));
  tf.registerKernel(batchNormSums(dnn));
  tf.registerKernel(scaledChannels(dnn));
  const batchNorm = tf.getGradient(tf.FusedBatchNorm);
  tf.unregisterGradient(tf.FusedBatchNorm);
  tf.registerGradient(fusedBatchNormGrad(tf, batchNorm));
  for (const name of [tf.Relu, tf.LeakyRelu]) {
    tf.unregisterGradient(name);
    tf.registerGradient(reluGradient(tf, name));
  }
  replaceKernel(tf, tf.Mean, (stock) => mean(tf, dnn, stock));
}
