/** ReLU and leaky ReLU, each direction in one pass; the stock gradients take three. Types other than float32 are delegated to `stock`. */
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type {
  GradConfig,
  KernelConfig,
  LeakyReluAttrs,
  LeakyReluInputs,
  NamedAttrMap,
  ReluInputs,
  Tensor,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { float32View, wasmKernel } from './wasm-kernel.js';

/** Name of a kernel that tfjs does not have. */
const LEAKY_RELU_GRAD = 'LeakyReluGrad';

export function relu(tf: Tf, primitives: ComputePrimitives, stock: KernelConfig): KernelConfig {
  return wasmKernel<ReluInputs, object>(tf.Relu, ({ inputs: { x }, backend }) =>
    x.dtype === 'float32'
      ? forward(primitives, backend, x, 0)
      : (stock.kernelFunc({ inputs: { x }, attrs: {}, backend }) as TensorInfo),
  );
}

export function leakyRelu(tf: Tf, primitives: ComputePrimitives, stock: KernelConfig): KernelConfig {
  return wasmKernel<LeakyReluInputs, LeakyReluAttrs>(tf.LeakyRelu, ({ inputs: { x }, attrs, backend }) =>
    x.dtype === 'float32'
      ? forward(primitives, backend, x, attrs.alpha)
      : (stock.kernelFunc({ inputs: { x }, attrs: { ...attrs }, backend }) as TensorInfo),
  );
}

export function leakyReluGrad(primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<{ x: TensorInfo; dy: TensorInfo }, LeakyReluAttrs>(
    LEAKY_RELU_GRAD,
    ({ inputs: { x, dy }, attrs, backend }) => {
      const dx = backend.makeOutput(x.shape, 'float32');
      const [ofX, ofDy, toDx] = [x, dy, dx].map((tensor) => float32View(backend, tensor));
      primitives.leakyReluGradient(toDx.length, attrs.alpha, ofX, ofDy, toDx);
      return dx;
    },
  );
}

/** Gradient of `Relu` and `LeakyRelu`, both of which save their input. */
export function reluGradient(tf: Tf, kernelName: string): GradConfig {
  return {
    kernelName,
    inputsToSave: ['x'],
    gradFunc: (dy, [x], attrs) => {
      // A plain ReLU has no alpha.
      const { alpha = 0 } = (attrs ?? {}) as NamedAttrMap & Partial<LeakyReluAttrs>;
      const inputs = { x: x as Tensor, dy: dy as Tensor };
      return { x: () => tf.engine().runKernel(LEAKY_RELU_GRAD, inputs, { alpha }) as Tensor };
    },
  };
}

function forward(
  primitives: ComputePrimitives,
  backend: BackendWasm,
  x: TensorInfo,
  alpha: number,
): TensorInfo {
  const y = backend.makeOutput(x.shape, 'float32');
  const [ofX, toY] = [x, y].map((tensor) => float32View(backend, tensor));
  primitives.leakyRelu(toY.length, alpha, ofX, toY);
  return y;
}
