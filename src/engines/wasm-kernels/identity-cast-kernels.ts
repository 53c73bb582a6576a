import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { CastAttrs, CastInputs, IdentityInputs, TensorInfo } from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';
import { registerWasmKernel } from './wasm-kernel.js';

/**
 * Share the data, which are never changed; the stock kernels copy them. A cast does so if the type is the same: gradients cast to the
 * type that a tensor already has.
 */
export function registerIdentityKernels(tf: Tf): void {
  registerWasmKernel<IdentityInputs, object>(tf, tf.Identity, ({ inputs, backend }) =>
    shared(backend, inputs.x),
  );
  registerWasmKernel<CastInputs, CastAttrs>(tf, tf.Cast, ({ inputs: { x }, attrs, backend }) =>
    x.dtype === attrs.dtype ? shared(backend, x) : undefined,
  );
}

function shared(backend: BackendWasm, { dataId, shape, dtype }: TensorInfo): TensorInfo {
  backend.incRef(dataId);
  return { dataId, shape, dtype };
}
