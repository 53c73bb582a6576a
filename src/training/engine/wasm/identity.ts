import type { IdentityInputs, KernelConfig } from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';
import { wasmKernel } from './kernel.js';

/** A tensor with the same values. Values are never changed, so that both may have them; the stock kernel copies them. */
export function identity(tf: Tf): KernelConfig {
  return wasmKernel<IdentityInputs, object>(tf.Identity, ({ inputs: { x }, backend }) => {
    backend.incRef(x.dataId);
    return { dataId: x.dataId, shape: x.shape, dtype: x.dtype };
  });
}
