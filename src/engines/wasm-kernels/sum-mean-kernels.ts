/** Sums and means of each channel, which batch normalisation and biases compute on large tensors. */
import type { MeanAttrs, SumAttrs, SumInputs, TensorInfo } from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { float32Views, registerWasmKernel } from './wasm-kernel.js';

/** Reductions over all axes before the last, or over those of each image. */
export function registerReductionKernels(tf: Tf, primitives: ComputePrimitives): void {
  for (const name of [tf.Sum, tf.Mean])
    registerWasmKernel<SumInputs, SumAttrs & MeanAttrs>(tf, name, ({ inputs: { x }, attrs, backend }) => {
      const channels = x.shape.at(-1) ?? 0;
      const first = firstOfRun(attrs.axis, x.shape.length);
      if (x.dtype !== 'float32' || x.shape.includes(0) || first === undefined) return undefined;
      const outer = x.shape.slice(0, first);
      const images = outer.reduce((all, size) => all * size, 1);
      const rows = x.shape.slice(first, -1).reduce((all, size) => all * size, 1);
      const between = attrs.keepDims ? x.shape.slice(first, -1).map(() => 1) : [];
      const result = backend.makeOutput([...outer, ...between, channels], 'float32');
      // Created for each sum, because a sum may grow the heap, which detaches views.
      const part = (tensor: TensorInfo, size: number, i: number) =>
        float32Views(backend, tensor)[0].subarray(i * size, (i + 1) * size);
      for (let i = 0; i < images; i++)
        primitives.columnSums(rows, channels, part(x, rows * channels, i), part(result, channels, i));
      const [sums] = float32Views(backend, result);
      if (name === tf.Mean && rows !== 1) for (let i = 0; i < sums.length; i++) sums[i] /= rows;
      return result;
    });
}

/** Returns the first axis if the axes are consecutive up to the last but one. */
function firstOfRun(axis: number | number[] | undefined, rank: number): number | undefined {
  if (axis === undefined || rank < 2) return undefined;
  const axes = [axis].flat().map((one) => (one < 0 ? one + rank : one));
  const first = rank - 1 - axes.length;
  return axes.length > 0 && axes.toSorted((a, b) => a - b).every((one, i) => one === first + i)
    ? first
    : undefined;
}
