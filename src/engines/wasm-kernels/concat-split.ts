/** Copies of subarrays: concatenation and split along channels, shifts of images by slice and padding; identities copy nothing. */
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type {
  CastAttrs,
  CastInputs,
  ConcatAttrs,
  ConcatInputs,
  IdentityInputs,
  PadV2Attrs,
  PadV2Inputs,
  SliceAttrs,
  SliceInputs,
  SplitVAttrs,
  SplitVInputs,
  Tensor,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/primitives.js';
import type { Tf } from '../tfjs.js';
import { float32Views, registerWasmKernel } from './kernel.js';

/** Types other than float32 stay with the stock kernels. */
export function registerCopyKernels(tf: Tf, primitives: ComputePrimitives): void {
  const sliceTensor = (backend: BackendWasm, x: TensorInfo, begin: number[], size: number[]) => {
    const y = backend.makeOutput(size, 'float32');
    copySubarray(primitives, backend, size, { tensor: x, begin }, { tensor: y, begin: zerosOf(y) });
    return y;
  };
  registerWasmKernel<ConcatInputs, ConcatAttrs>(tf, tf.Concat, ({ inputs, attrs, backend }) => {
    const parts = Object.values(inputs) as TensorInfo[];
    if (parts.some(({ dtype }) => dtype !== 'float32')) return undefined;
    const [axis] = tf.util.parseAxisParam(attrs.axis, parts[0].shape);
    const sizes = parts.map(({ shape }) => shape[axis]);
    const y = backend.makeOutput(withAxis(parts[0].shape, axis, sumOf(sizes)), 'float32');
    parts.forEach((part, i) => {
      const begin = withAxis(zerosOf(y), axis, sumOf(sizes.slice(0, i)));
      const from = { tensor: part, begin: zerosOf(part) };
      copySubarray(primitives, backend, part.shape, from, { tensor: y, begin });
    });
    return y;
  });
  registerWasmKernel<SplitVInputs, SplitVAttrs>(tf, tf.SplitV, ({ inputs: { x }, attrs, backend }) => {
    if (x.dtype !== 'float32') return undefined;
    const [axis] = tf.util.parseAxisParam(attrs.axis, x.shape);
    const sizes = tf.backend_util.prepareSplitSize(x as Tensor, attrs.numOrSizeSplits, axis);
    return sizes.map((size, i) => {
      const begin = withAxis(zerosOf(x), axis, sumOf(sizes.slice(0, i)));
      return sliceTensor(backend, x, begin, withAxis(x.shape, axis, size));
    });
  });
  registerWasmKernel<SliceInputs, SliceAttrs>(tf, tf.Slice, ({ inputs: { x }, attrs, backend }) => {
    if (x.dtype !== 'float32') return undefined;
    const [begin, size] = tf.slice_util.parseSliceParams(x as Tensor, attrs.begin, attrs.size);
    return sliceTensor(backend, x, begin, size);
  });
  registerWasmKernel<PadV2Inputs, PadV2Attrs>(tf, tf.PadV2, ({ inputs: { x }, attrs, backend }) => {
    if (x.dtype !== 'float32') return undefined;
    const { paddings, constantValue } = attrs;
    const shape = x.shape.map((size, i) => paddings[i][0] + size + paddings[i][1]);
    const y = backend.makeOutput(shape, 'float32');
    float32Views(backend, y)[0].fill(constantValue);
    const begin = paddings.map(([before]) => before);
    copySubarray(primitives, backend, x.shape, { tensor: x, begin: zerosOf(x) }, { tensor: y, begin });
    return y;
  });
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
    const [values] = float32Views(backend, [from, to][i].tensor);
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
