/** What the kernels of this folder share: typed kernel arguments and views of tensors on the WASM heap. */

import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { KernelConfig, KernelFunc, TensorInfo } from '@tensorflow/tfjs-core';

/** Name of the backend. */
export const WASM = 'wasm';

/** Inputs that the op always passes: tfjs types every named input as possibly missing. */
export type RequiredInputs<Inputs> = { [Name in keyof Inputs]-?: NonNullable<Inputs[Name]> };

export interface KernelArguments<Inputs, Attributes> {
  inputs: RequiredInputs<Inputs>;
  attrs: Attributes;
  backend: BackendWasm;
}

/** A kernel for the WASM backend. tfjs stores kernels untyped, so this is the one place that narrows them. */
export function wasmKernel<Inputs, Attributes>(
  kernelName: string,
  compute: (args: KernelArguments<Inputs, Attributes>) => TensorInfo | TensorInfo[],
): KernelConfig {
  return { kernelName, backendName: WASM, kernelFunc: compute as unknown as KernelFunc };
}

/**
 * The values of a float32 tensor where they lie on the heap. Allocate outputs first: growing the heap detaches every
 * view made before.
 */
export function float32View(backend: BackendWasm, tensor: TensorInfo): Float32Array {
  return backend.typedArrayFromHeap(tensor) as Float32Array;
}

export function int32View(backend: BackendWasm, tensor: TensorInfo): Int32Array {
  return backend.typedArrayFromHeap(tensor) as Int32Array;
}

/** A new float32 tensor of zeros and the view of its values. Kernels write into recycled memory, so it must be cleared. */
export function newZeros(
  backend: BackendWasm,
  shape: number[],
): { tensor: TensorInfo; clear: () => Float32Array } {
  const tensor = backend.makeOutput(shape, 'float32');
  return { tensor, clear: () => float32View(backend, tensor).fill(0) };
}
