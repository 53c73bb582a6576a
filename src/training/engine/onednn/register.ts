/**
 * Puts oneDNN under the tfjs WASM backend. It works on the heap of the backend, so that no tensor is copied; every other
 * operation stays with WASM.
 */
import type { Tf } from '../tf.js';
import { replaceKernel } from '../wasm/kernel.js';
import type { OneDnn } from './addon.js';
import { conv2d, conv2dBackpropFilter, conv2dBackpropInput, fusedConv2d } from './conv2d.js';
import { batchMatMul, fusedMatMul } from './mat-mul.js';

/** Call once for a `tf`, after `registerTrainingKernels` with the same addon. */
export function registerOneDnnKernels(tf: Tf, dnn: OneDnn): void {
  replaceKernel(tf, tf.Conv2D, () => conv2d(tf, dnn));
  replaceKernel(tf, tf.FusedConv2D, () => fusedConv2d(tf, dnn));
  replaceKernel(tf, tf.Conv2DBackpropInput, () => conv2dBackpropInput(tf, dnn));
  replaceKernel(tf, tf.Conv2DBackpropFilter, () => conv2dBackpropFilter(tf, dnn));
  replaceKernel(tf, tf.BatchMatMul, (stock) => batchMatMul(tf, dnn, stock));
  replaceKernel(tf, tf._FusedMatMul, (stock) => fusedMatMul(tf, dnn, stock));
}
