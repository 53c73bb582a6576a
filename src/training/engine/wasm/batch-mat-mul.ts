import type {
  BatchMatMulAttrs,
  BatchMatMulInputs,
  KernelConfig,
  Tensor,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';
import { wasmKernel } from './kernel.js';

/**
 * Matrix product. The stock kernel is fast for plain products only, and the gradients of dense layers are transposed
 * ones: so transpose first, then multiply.
 */
export function batchMatMul(tf: Tf, stock: KernelConfig): KernelConfig {
  const turn = (x: TensorInfo): Tensor => {
    const axes = x.shape.map((_, axis) => axis);
    const [rows, columns] = axes.splice(-2);
    return tf.transpose(x as Tensor, [...axes, columns, rows]);
  };
  return wasmKernel<BatchMatMulInputs, BatchMatMulAttrs>(tf.BatchMatMul, ({ inputs, attrs, backend }) => {
    const { transposeA, transposeB } = attrs;
    return tf.tidy(() => {
      const a = transposeA ? turn(inputs.a) : inputs.a;
      const b = transposeB ? turn(inputs.b) : inputs.b;
      return stock.kernelFunc({
        inputs: { a, b },
        attrs: { transposeA: false, transposeB: false },
        backend,
      }) as Tensor;
    });
  });
}
