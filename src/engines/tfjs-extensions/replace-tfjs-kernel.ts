import type { GradConfig, KernelFunc } from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';

/** Replaces a kernel of a backend. The stock set-up is kept: it binds the native function that the new kernel may still call. */
export function replaceKernel(
  tf: Tf,
  backend: string,
  name: string,
  make: (stock: KernelFunc) => KernelFunc,
): void {
  const stock = tf.getKernel(name, backend);
  tf.unregisterKernel(name, backend);
  tf.registerKernel({ ...stock, kernelFunc: make(stock.kernelFunc) });
}

/** Registers a gradient, in place of the one that tfjs may have for the kernel. */
export function replaceGradient(tf: Tf, gradient: GradConfig): void {
  if (tf.getGradient(gradient.kernelName)) tf.unregisterGradient(gradient.kernelName);
  tf.registerGradient(gradient);
}
