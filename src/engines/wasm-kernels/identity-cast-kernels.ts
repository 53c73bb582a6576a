import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { CastAttrs, CastInputs, IdentityInputs, KernelConfig, TensorInfo } from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';
import { wasmKernel } from './wasm-kernel.js';

/** Returns a tensor that shares the data, which are never changed; the stock kernel copies them. */
export function identity(tf: Tf): KernelConfig {
  return wasmKernel<IdentityInputs, object>(tf.Identity, ({ inputs: { x }, backend }) => shared(backend, x));
}

/** Shares the data if the type is the same: gradients cast to the type that a tensor already has. */
export function cast(tf: Tf, stock: KernelConfig): KernelConfig {
  return wasmKernel<CastInputs, CastAttrs>(tf.Cast, ({ inputs: { x }, attrs, backend }) =>
    x.dtype === attrs.dtype
      ? shared(backend, x)
      : (stock.kernelFunc({ inputs: { x }, attrs: { ...attrs }, backend }) as TensorInfo),
  );
}

function shared(backend: BackendWasm, { dataId, shape, dtype }: TensorInfo): TensorInfo {
  backend.incRef(dataId);
  return { dataId, shape, dtype };
}
