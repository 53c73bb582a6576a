/** Shared by the kernels: typed arguments, and views of tensors on the WASM heap. */

import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { KernelConfig, KernelFunc, TensorInfo } from '@tensorflow/tfjs-core';

/** Name of the backend. */
export const WASM = 'wasm';

/** Inputs that the operation always passes. tfjs declares every named input as optional. */
type RequiredInputs<Inputs> = { [Name in keyof Inputs]-?: NonNullable<Inputs[Name]> };

interface KernelArguments<Inputs, Attributes> {
  inputs: RequiredInputs<Inputs>;
  attrs: Attributes;
  backend: BackendWasm;
}

/** Returns a kernel for the WASM backend. tfjs stores kernels untyped, so the types are narrowed here. */
export function wasmKernel<Inputs, Attributes>(
  kernelName: string,
  compute: (args: KernelArguments<Inputs, Attributes>) => TensorInfo | TensorInfo[],
): KernelConfig {
  return { kernelName, backendName: WASM, kernelFunc: compute as unknown as KernelFunc };
}

/**
 * Returns a view of the values of a float32 tensor on the heap. Allocate outputs first: growth of the heap detaches all existing views.
 */
export function float32View(backend: BackendWasm, tensor: TensorInfo): Float32Array {
  return backend.typedArrayFromHeap(tensor) as Float32Array;
}
