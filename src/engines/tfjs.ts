/** The tfjs API that models and training use, independent of the engine; replacements of its kernels, and a step of Adam. */
import type * as core from '@tensorflow/tfjs-core';
import type { GradConfig, KernelFunc, NamedAttrMap, Tensor } from '@tensorflow/tfjs-core';
import type * as layers from '@tensorflow/tfjs-layers';

export type Tf = typeof core & typeof layers;

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

/** Name of a kernel that tfjs does not have. */
export const ADAM_KERNEL = 'AdamStep';

export interface AdamHyperparameters {
  beta1: number;
  beta2: number;
  /** Weight decay: this times the variable is added to the gradient. */
  decay: number;
  /** `rate` and `epsilon` include the bias correction of the moments. */
  rate: number;
  epsilon: number;
}

type AdamTensors = Record<'variable' | 'gradient' | 'first' | 'second', Tensor>;

/**
 * One step of Adam for one variable: a fused kernel if the engine has one, otherwise composed of tfjs operations. Returns the variable and
 * its two moments after the step.
 */
export function adamStep(tf: Tf, tensors: AdamTensors, numbers: AdamHyperparameters): Tensor[] {
  if (tf.getKernel(ADAM_KERNEL, tf.getBackend()))
    return tf
      .engine()
      .runKernel(ADAM_KERNEL, tensors, numbers as unknown as NamedAttrMap) as unknown as Tensor[];
  const { variable, gradient, first, second } = tensors;
  const { beta1, beta2, decay, rate, epsilon } = numbers;
  return tf.tidy(() => {
    const g = decay === 0 ? gradient : tf.add(gradient, tf.mul(variable, decay));
    const m = tf.add(tf.mul(first, beta1), tf.mul(g, 1 - beta1));
    const v = tf.add(tf.mul(second, beta2), tf.mul(tf.square(g), 1 - beta2));
    const move = tf.div(tf.mul(m, rate), tf.add(tf.sqrt(v), epsilon));
    return [tf.sub(variable, move), m, v];
  });
}
