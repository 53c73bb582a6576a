/** Sums and means of each channel, which batch normalisation and biases take of large tensors. */
import type { KernelConfig, MeanAttrs, SumAttrs, SumInputs, TensorInfo } from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';
import { floats, wasmKernel } from './kernel.js';
import type { Loops } from './loops.js';

/** Of all axes but the last; the others stay with `stock`. */
export function sum(tf: Tf, loops: Loops, stock: KernelConfig): KernelConfig {
  return channelSums(tf.Sum, loops, stock, () => 1);
}

export function mean(tf: Tf, loops: Loops, stock: KernelConfig): KernelConfig {
  return channelSums(tf.Mean, loops, stock, (rows) => rows);
}

function channelSums(
  name: string,
  loops: Loops,
  stock: KernelConfig,
  divisorOf: (rows: number) => number,
): KernelConfig {
  return wasmKernel<SumInputs, SumAttrs & MeanAttrs>(name, ({ inputs: { x }, attrs, backend }) => {
    const channels = x.shape.at(-1) ?? 0;
    if (x.dtype !== 'float32' || channels === 0 || !isAllButLast(attrs.axis, x.shape.length))
      return stock.kernelFunc({ inputs: { x }, attrs: { ...attrs }, backend }) as TensorInfo;
    const rows = x.shape.slice(0, -1).reduce((all, size) => all * size, 1);
    const shape = attrs.keepDims
      ? x.shape.map((_, i) => (i === x.shape.length - 1 ? channels : 1))
      : [channels];
    const result = backend.makeOutput(shape, 'float32');
    const sums = floats(backend, result);
    loops.columnSums(rows, channels, floats(backend, x), sums);
    const divisor = divisorOf(rows);
    if (divisor !== 1) for (let c = 0; c < channels; c++) sums[c] /= divisor;
    return result;
  });
}

function isAllButLast(axis: number | number[] | undefined, rank: number): boolean {
  if (axis === undefined || rank < 2) return false;
  const axes = [axis].flat().map((one) => (one < 0 ? one + rank : one));
  return axes.length === rank - 1 && axes.toSorted((a, b) => a - b).every((one, i) => one === i);
}
