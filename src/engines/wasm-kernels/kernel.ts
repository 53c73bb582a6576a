/** Shared by the kernels: registration with typed arguments, views of tensors on the WASM heap, and fused activations. */
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { backend_util, KernelFunc, Tensor, TensorInfo } from '@tensorflow/tfjs-core';
import { replaceKernel, type Tf } from '../tfjs.js';

const BACKEND = 'wasm';

/** Inputs that the operation always passes. tfjs declares every named input as optional. */
type RequiredInputs<Inputs> = { [Name in keyof Inputs]-?: NonNullable<Inputs[Name]> };

interface KernelArguments<Inputs, Attributes> {
  inputs: RequiredInputs<Inputs>;
  attrs: Attributes;
  backend: BackendWasm;
}

/**
 * Registers a kernel with the WASM backend, in place of the stock kernel if there is one. A call for which `compute` returns undefined is
 * delegated to the stock kernel. tfjs stores kernels untyped, so the types are narrowed here.
 */
export function registerWasmKernel<Inputs, Attributes>(
  tf: Tf,
  name: string,
  compute: (args: KernelArguments<Inputs, Attributes>) => TensorInfo | TensorInfo[] | undefined,
): void {
  const own = compute as (given: unknown) => ReturnType<KernelFunc> | undefined;
  if (tf.getKernel(name, BACKEND))
    replaceKernel(tf, BACKEND, name, (stock) => (given) => own(given) ?? stock(given));
  else tf.registerKernel({ kernelName: name, backendName: BACKEND, kernelFunc: own as KernelFunc });
}

/**
 * Returns views of the values of float32 tensors on the heap. Allocate outputs first: growth of the heap detaches all existing views.
 */
export function float32Views(backend: BackendWasm, ...tensors: TensorInfo[]): Float32Array[] {
  return tensors.map((tensor) => backend.typedArrayFromHeap(tensor) as Float32Array);
}

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
