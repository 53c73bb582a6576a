/** Copies of subarrays: concatenation and split along channels, shifts of images by slice and padding. */
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type {
  ConcatAttrs,
  ConcatInputs,
  KernelConfig,
  PadV2Attrs,
  PadV2Inputs,
  SliceAttrs,
  SliceInputs,
  SplitVAttrs,
  SplitVInputs,
  Tensor,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { float32View, wasmKernel } from './wasm-kernel.js';

/** Types other than float32 are delegated to `stock`, here and below. */
export function concat(tf: Tf, primitives: ComputePrimitives, stock: KernelConfig): KernelConfig {
  return wasmKernel<ConcatInputs, ConcatAttrs>(tf.Concat, ({ inputs, attrs, backend }) => {
    const parts = Object.values(inputs) as TensorInfo[];
    if (parts.some(({ dtype }) => dtype !== 'float32'))
      return stock.kernelFunc({ inputs: inputs as never, attrs: { ...attrs }, backend }) as TensorInfo;
    const [axis] = tf.util.parseAxisParam(attrs.axis, parts[0].shape);
    const sizes = parts.map(({ shape }) => shape[axis]);
    const y = backend.makeOutput(withAxis(parts[0].shape, axis, sumOf(sizes)), 'float32');
    parts.forEach((part, i) => {
      const begin = withAxis(zerosOf(y), axis, sumOf(sizes.slice(0, i)));
      copySubarray(
        primitives,
        backend,
        part.shape,
        { tensor: part, begin: zerosOf(part) },
        { tensor: y, begin },
      );
    });
    return y;
  });
}

export function splitV(tf: Tf, primitives: ComputePrimitives, stock: KernelConfig): KernelConfig {
  return wasmKernel<SplitVInputs, SplitVAttrs>(tf.SplitV, ({ inputs: { x }, attrs, backend }) => {
    if (x.dtype !== 'float32')
      return stock.kernelFunc({ inputs: { x }, attrs: { ...attrs }, backend }) as TensorInfo;
    const [axis] = tf.util.parseAxisParam(attrs.axis, x.shape);
    const sizes = tf.backend_util.prepareSplitSize(x as Tensor, attrs.numOrSizeSplits, axis);
    return sizes.map((size, i) =>
      sliceTensor(
        primitives,
        backend,
        x,
        withAxis(zerosOf(x), axis, sumOf(sizes.slice(0, i))),
        withAxis(x.shape, axis, size),
      ),
    );
  });
}

export function slice(tf: Tf, primitives: ComputePrimitives, stock: KernelConfig): KernelConfig {
  return wasmKernel<SliceInputs, SliceAttrs>(tf.Slice, ({ inputs: { x }, attrs, backend }) => {
    if (x.dtype !== 'float32')
      return stock.kernelFunc({ inputs: { x }, attrs: { ...attrs }, backend }) as TensorInfo;
    const [begin, size] = tf.slice_util.parseSliceParams(x as Tensor, attrs.begin, attrs.size);
    return sliceTensor(primitives, backend, x, begin, size);
  });
}

export function pad(tf: Tf, primitives: ComputePrimitives, stock: KernelConfig): KernelConfig {
  return wasmKernel<PadV2Inputs, PadV2Attrs>(tf.PadV2, ({ inputs: { x }, attrs, backend }) => {
    if (x.dtype !== 'float32')
      return stock.kernelFunc({ inputs: { x }, attrs: { ...attrs }, backend }) as TensorInfo;
    const { paddings, constantValue } = attrs;
    const shape = x.shape.map((size, i) => paddings[i][0] + size + paddings[i][1]);
    const y = backend.makeOutput(shape, 'float32');
    float32View(backend, y).fill(constantValue);
    const begin = paddings.map(([before]) => before);
    copySubarray(primitives, backend, x.shape, { tensor: x, begin: zerosOf(x) }, { tensor: y, begin });
    return y;
  });
}

function sliceTensor(
  primitives: ComputePrimitives,
  backend: BackendWasm,
  x: TensorInfo,
  begin: number[],
  size: number[],
): TensorInfo {
  const y = backend.makeOutput(size, 'float32');
  copySubarray(primitives, backend, size, { tensor: x, begin }, { tensor: y, begin: zerosOf(y) });
  return y;
}

interface Subarray {
  tensor: TensorInfo;
  begin: number[];
}

function copySubarray(
  primitives: ComputePrimitives,
  backend: BackendWasm,
  size: number[],
  from: Subarray,
  to: Subarray,
): void {
  if (size.includes(0)) return;
  const sides = [from, to].map(({ tensor, begin }) => ({
    shape: [1, 1, ...tensor.shape],
    begin: [0, 0, ...begin],
  }));
  const box = [1, 1, ...size];
  // An axis that is copied completely is merged with the axis before it.
  while (box.length > 2 && sides.every(({ shape }) => shape.at(-1) === box.at(-1))) {
    const size = box.pop()!;
    box[box.length - 1] *= size;
    for (const { shape, begin } of sides) {
      shape.pop();
      begin.pop();
      shape[shape.length - 1] *= size;
      begin[begin.length - 1] *= size;
    }
  }
  const [rows, columns] = box.splice(-2);
  const planes = sides.map(({ shape, begin }, i) => {
    const [height, width] = shape.splice(-2);
    const [row, column] = begin.splice(-2);
    const values = float32View(backend, [from, to][i].tensor);
    const at = (index: number[]) => {
      const plane = shape.reduce((offset, length, axis) => offset * length + begin[axis] + index[axis], 0);
      const start = (plane * height + row) * width;
      return values.subarray(start, start + rows * width);
    };
    return { width, column, at };
  });
  const [source, target] = planes;
  const geometry = Int32Array.of(rows, columns, source.width, source.column, target.width, target.column);
  forEachIndex(box, (index) => primitives.copyColumns(geometry, source.at(index), target.at(index)));
}

function forEachIndex(shape: number[], visit: (index: number[]) => void): void {
  const index = shape.map(() => 0);
  for (let axis = 0; axis >= 0; ) {
    visit(index);
    for (axis = shape.length - 1; axis >= 0 && ++index[axis] === shape[axis]; axis--) index[axis] = 0;
  }
}

const zerosOf = ({ shape }: TensorInfo) => shape.map(() => 0);
const withAxis = (values: number[], axis: number, value: number) =>
  values.map((own, i) => (i === axis ? value : own));
const sumOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0);
