import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { backend_util, Tensor, TensorInfo } from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';

interface ActivationAttrs {
  activation: backend_util.Activation;
  leakyreluAlpha?: number;
}

/** Applies the activation of a fused operation to its result, and disposes the result. */
export function applyActivation(
  tf: Tf,
  backend: BackendWasm,
  y: TensorInfo,
  { activation, leakyreluAlpha }: ActivationAttrs,
  weights: TensorInfo | undefined,
): TensorInfo {
  if (activation === 'linear') return y;
  const run = (name: string, inputs: Record<string, TensorInfo>, attrs = {}) =>
    tf.engine().runKernel(name, inputs as never, attrs) as Tensor;
  const result = {
    relu: () => run(tf.Relu, { x: y }),
    relu6: () => run(tf.Relu6, { x: y }),
    elu: () => run(tf.Elu, { x: y }),
    sigmoid: () => run(tf.Sigmoid, { x: y }),
    leakyrelu: () => run(tf.LeakyRelu, { x: y }, { alpha: leakyreluAlpha }),
    prelu: () => run(tf.Prelu, { x: y, alpha: weights as TensorInfo }),
  }[activation]();
  backend.disposeData(y.dataId);
  return result;
}
