/** Joining tensors along their channels and taking them apart, as skips of a U-Net are. */
import type {
  ConcatAttrs,
  ConcatInputs,
  KernelConfig,
  SplitVAttrs,
  SplitVInputs,
  Tensor,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';
import { floats, wasmKernel } from '../wasm/kernel.js';
import type { OneDnn } from './addon.js';

/** Along other axes, or of other types, it stays with `stock`. */
export function concat(tf: Tf, dnn: OneDnn, stock: KernelConfig): KernelConfig {
  return wasmKernel<ConcatInputs, ConcatAttrs>(tf.Concat, ({ inputs, attrs, backend }) => {
    const parts = Object.values(inputs) as TensorInfo[];
    const first = parts[0];
    if (!isOfChannels(first, attrs.axis) || parts.some(({ dtype }) => dtype !== 'float32'))
      return stock.kernelFunc({ inputs: inputs as never, attrs: { ...attrs }, backend }) as TensorInfo;
    const widths = parts.map(({ shape }) => shape.at(-1)!);
    const width = sumOf(widths);
    const y = backend.makeOutput([...first.shape.slice(0, -1), width], 'float32');
    const rows = rowsOf(first);
    parts.forEach((part, i) => {
      const geometry = Int32Array.of(rows, widths[i], widths[i], 0, width, sumOf(widths.slice(0, i)));
      dnn.copyColumns(geometry, floats(backend, part), floats(backend, y));
    });
    return y;
  });
}

export function splitV(tf: Tf, dnn: OneDnn, stock: KernelConfig): KernelConfig {
  return wasmKernel<SplitVInputs, SplitVAttrs>(tf.SplitV, ({ inputs: { x }, attrs, backend }) => {
    const { axis, numOrSizeSplits } = attrs;
    if (x.dtype !== 'float32' || !isOfChannels(x, axis))
      return stock.kernelFunc({ inputs: { x }, attrs: { ...attrs }, backend });
    const widths = tf.backend_util.prepareSplitSize(x as Tensor, numOrSizeSplits, x.shape.length - 1);
    const width = x.shape.at(-1)!;
    const rows = rowsOf(x);
    return widths.map((own, i) => {
      const part = backend.makeOutput([...x.shape.slice(0, -1), own], 'float32');
      const geometry = Int32Array.of(rows, own, width, sumOf(widths.slice(0, i)), own, 0);
      dnn.copyColumns(geometry, floats(backend, x), floats(backend, part));
      return part;
    });
  });
}

function isOfChannels({ shape }: TensorInfo, axis: number): boolean {
  return shape.length > 1 && (axis < 0 ? axis + shape.length : axis) === shape.length - 1;
}

const rowsOf = ({ shape }: TensorInfo) => shape.slice(0, -1).reduce((all, size) => all * size, 1);
const sumOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0);
