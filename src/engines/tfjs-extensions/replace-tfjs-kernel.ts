import type { KernelConfig } from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';

/** Replaces a kernel of a backend. The stock set-up is kept: it binds the native function that the new kernel may still call. */
export function replaceKernel(
  tf: Tf,
  backend: string,
  name: string,
  make: (stock: KernelConfig) => Partial<KernelConfig>,
): void {
  const stock = tf.getKernel(name, backend);
  tf.unregisterKernel(name, backend);
  tf.registerKernel({ ...stock, ...make(stock) });
}
