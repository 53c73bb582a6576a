/** ReLU and leaky ReLU, each direction in one pass; the stock gradients take three. */
import type {
  LeakyReluAttrs,
  LeakyReluInputs,
  NamedAttrMap,
  Tensor,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/primitives.js';
import { replaceGradient, type Tf } from '../tfjs.js';
import { float32Views, registerWasmKernel } from './kernel.js';

/** Name of a kernel that tfjs does not have. */
const LEAKY_RELU_GRAD = 'LeakyReluGrad';

export function registerReluKernels(tf: Tf, primitives: ComputePrimitives): void {
  for (const name of [tf.Relu, tf.LeakyRelu]) {
    registerWasmKernel<LeakyReluInputs, Partial<LeakyReluAttrs>>(
      tf,
      name,
      ({ inputs: { x }, attrs, backend }) => {
        if (x.dtype !== 'float32') return undefined;
        const y = backend.makeOutput(x.shape, 'float32');
        const [ofX, toY] = float32Views(backend, x, y);
        primitives.leakyRelu(toY.length, alphaOf(attrs), ofX, toY);
        return y;
      },
    );
    replaceGradient(tf, {
      kernelName: name,
      inputsToSave: ['x'],
      gradFunc: (dy, [x], attrs) => {
        const inputs = { x: x as Tensor, dy: dy as Tensor };
        return {
          x: () => tf.engine().runKernel(LEAKY_RELU_GRAD, inputs, { alpha: alphaOf(attrs) }) as Tensor,
        };
      },
    });
  }
  registerWasmKernel<{ x: TensorInfo; dy: TensorInfo }, LeakyReluAttrs>(
    tf,
    LEAKY_RELU_GRAD,
    ({ inputs: { x, dy }, attrs, backend }) => {
      const dx = backend.makeOutput(x.shape, 'float32');
      const [ofX, ofDy, toDx] = float32Views(backend, x, dy, dx);
      primitives.leakyReluGradient(toDx.length, attrs.alpha, ofX, ofDy, toDx);
      return dx;
    },
  );
}

/** A plain ReLU has no alpha, and possibly no attributes. */
function alphaOf(attrs: (NamedAttrMap & Partial<LeakyReluAttrs>) | undefined): number {
  return attrs?.alpha ?? 0;
}
