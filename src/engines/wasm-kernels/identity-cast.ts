import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { CastAttrs, CastInputs, IdentityInputs, KernelConfig, TensorInfo } from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';
import { wasmKernel } from './wasm-kernel.js';

/** A tensor with the same values. Values are never changed, so that both may have them; the stock kernel copies them. */
export function identity(tf: Tf): KernelConfig {
  return wasmKernel<IdentityInputs, object>(tf.Identity, ({ inputs: { x }, backend }) => shared(backend, x));
}

/** Gradients cast to the type that a tensor has already. */
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
