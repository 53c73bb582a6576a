/** One step of Adam for one variable: a fused kernel if the engine has one, otherwise composed of tfjs operations. */
import type { NamedAttrMap, Tensor } from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';

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

/** Returns the variable and its two moments after the step. */
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
