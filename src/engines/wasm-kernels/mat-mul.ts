/** Matrix products. Types other than float32, broadcast batches and empty matrices stay with the stock kernels. */
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type {
  _FusedMatMulAttrs,
  _FusedMatMulInputs,
  BatchMatMulAttrs,
  BatchMatMulInputs,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/primitives.js';
import type { Tf } from '../tfjs.js';
import { applyActivation, float32Views, registerWasmKernel } from './kernel.js';

export function registerMatMulKernels(tf: Tf, primitives: ComputePrimitives): void {
  registerWasmKernel<BatchMatMulInputs, BatchMatMulAttrs>(
    tf,
    tf.BatchMatMul,
    ({ inputs: { a, b }, attrs, backend }) => product(primitives, backend, a, b, attrs),
  );
  registerWasmKernel<_FusedMatMulInputs, _FusedMatMulAttrs>(
    tf,
    tf._FusedMatMul,
    ({ inputs: { a, b, bias, preluActivationWeights }, attrs, backend }) => {
      const isRow = bias === undefined || bias.shape.length === 1;
      const y = isRow ? product(primitives, backend, a, b, attrs) : undefined;
      if (!y) return undefined;
      if (bias) {
        const [values, row] = float32Views(backend, y, bias);
        for (let at = 0; at < values.length; at += row.length)
          for (let i = 0; i < row.length; i++) values[at + i] += row[i];
      }
      return applyActivation(tf, backend, y, attrs, preluActivationWeights);
    },
  );
}

function product(
  primitives: ComputePrimitives,
  backend: BackendWasm,
  a: TensorInfo,
  b: TensorInfo,
  { transposeA, transposeB }: BatchMatMulAttrs,
): TensorInfo | undefined {
  const [rowsOfA, columnsOfA] = a.shape.slice(-2) as [number, number];
  const [rowsOfB, columnsOfB] = b.shape.slice(-2) as [number, number];
  const [m, k] = transposeA ? [columnsOfA, rowsOfA] : [rowsOfA, columnsOfA];
  const n = transposeB ? rowsOfB : columnsOfB;
  const outer = a.shape.slice(0, -2);
  const areFloats = a.dtype === 'float32' && b.dtype === 'float32';
  if (!areFloats || outer.join() !== b.shape.slice(0, -2).join() || m * n * k === 0) return undefined;
  const y = backend.makeOutput([...outer, m, n], 'float32');
  const shape = Int32Array.of(m, n, k, Number(transposeA), Number(transposeB));
  const batches = outer.reduce((all, size) => all * size, 1);
  // Created for each product, because a product may grow the heap, which detaches views.
  const part = (tensor: TensorInfo, size: number, i: number) =>
    float32Views(backend, tensor)[0].subarray(i * size, (i + 1) * size);
  for (let i = 0; i < batches; i++)
    primitives.multiply(shape, part(a, m * k, i), part(b, k * n, i), part(y, m * n, i));
  return y;
}
