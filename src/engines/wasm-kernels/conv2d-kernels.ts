/** Convolutions and their gradients. */
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type {
  backend_util,
  Conv2DAttrs,
  Conv2DBackpropFilterAttrs,
  Conv2DBackpropFilterInputs,
  Conv2DBackpropInputAttrs,
  Conv2DBackpropInputInputs,
  Conv2DInputs,
  FusedConv2DAttrs,
  FusedConv2DInputs,
  KernelConfig,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import {
  type ComputePrimitives,
  FILTER_GRADIENT,
  FORWARD,
  INPUT_GRADIENT,
} from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import type { WithDilations } from '../tfjs-extensions/index.js';
import { applyActivation } from './fused-activation-kernel.js';
import { float32View, wasmKernel } from './wasm-kernel.js';

type Shape = [number, number, number, number];

export function conv2d(tf: Tf, primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<Conv2DInputs, Conv2DAttrs>(tf.Conv2D, ({ inputs: { x, filter }, attrs, backend }) =>
    forward(primitives, backend, x, filter, undefined, infoOf(tf, x.shape, filter.shape, attrs)),
  );
}

export function fusedConv2d(tf: Tf, primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<FusedConv2DInputs, FusedConv2DAttrs>(
    tf.FusedConv2D,
    ({ inputs: { x, filter, bias, preluActivationWeights }, attrs, backend }) => {
      const y = forward(primitives, backend, x, filter, bias, infoOf(tf, x.shape, filter.shape, attrs));
      return applyActivation(tf, backend, y, attrs, preluActivationWeights);
    },
  );
}

export function conv2dBackpropInput(tf: Tf, primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<Conv2DBackpropInputInputs, Conv2DBackpropInputAttrs & WithDilations>(
    tf.Conv2DBackpropInput,
    ({ inputs: { dy, filter }, attrs, backend }) => {
      const dx = backend.makeOutput(attrs.inputShape, 'float32');
      const info = infoOf(tf, attrs.inputShape, filter.shape, attrs);
      const [toDx, ofFilter, ofDy] = [dx, filter, dy].map((tensor) => float32View(backend, tensor));
      primitives.convolve(INPUT_GRADIENT, geometryOf(info), toDx, ofFilter, ofDy, null);
      return dx;
    },
  );
}

export function conv2dBackpropFilter(tf: Tf, primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<Conv2DBackpropFilterInputs, Conv2DBackpropFilterAttrs & WithDilations>(
    tf.Conv2DBackpropFilter,
    ({ inputs: { x, dy }, attrs, backend }) => {
      const dw = backend.makeOutput(attrs.filterShape, 'float32');
      const info = infoOf(tf, x.shape, attrs.filterShape, attrs);
      const [ofX, toDw, ofDy] = [x, dw, dy].map((tensor) => float32View(backend, tensor));
      primitives.convolve(FILTER_GRADIENT, geometryOf(info), ofX, toDw, ofDy, null);
      return dw;
    },
  );
}

function forward(
  primitives: ComputePrimitives,
  backend: BackendWasm,
  x: TensorInfo,
  filter: TensorInfo,
  bias: TensorInfo | undefined,
  info: backend_util.Conv2DInfo,
): TensorInfo {
  const y = backend.makeOutput(info.outShape, 'float32');
  const [ofX, ofFilter, toY] = [x, filter, y].map((tensor) => float32View(backend, tensor));
  primitives.convolve(
    FORWARD,
    geometryOf(info),
    ofX,
    ofFilter,
    toY,
    bias ? float32View(backend, bias) : null,
  );
  return y;
}

function infoOf(
  tf: Tf,
  x: number[],
  filter: number[],
  attrs: Pick<Conv2DAttrs, 'strides' | 'pad' | 'dimRoundingMode'> & Partial<Conv2DAttrs>,
): backend_util.Conv2DInfo {
  const { strides, pad, dilations = 1, dimRoundingMode, dataFormat = 'NHWC' } = attrs;
  if (dimRoundingMode !== undefined && dimRoundingMode !== 'floor')
    throw new Error(`a convolution that rounds sizes by ${dimRoundingMode} is not supported, only by floor`);
  if ([...x, ...filter].slice(1).includes(0)) throw new Error('a convolution of nothing is not supported');
  if (dataFormat !== 'NHWC') throw new Error(`a convolution of ${dataFormat} is not supported, only NHWC`);
  const info = tf.backend_util.computeConv2DInfo(
    x as Shape,
    filter as Shape,
    strides,
    dilations,
    pad,
    dimRoundingMode,
  );
  const { top, left, bottom, right } = info.padInfo;
  if (Math.min(top, left, bottom, right) < 0)
    throw new Error('a convolution with negative padding is not supported');
  return info;
}

function geometryOf(info: backend_util.Conv2DInfo): Int32Array {
  const { batchSize, inHeight, inWidth, inChannels, outChannels, filterHeight, filterWidth, padInfo } = info;
  return Int32Array.of(
    batchSize,
    inHeight,
    inWidth,
    inChannels,
    outChannels,
    filterHeight,
    filterWidth,
    info.strideHeight,
    info.strideWidth,
    info.dilationHeight,
    info.dilationWidth,
    padInfo.top,
    padInfo.left,
    padInfo.bottom,
    padInfo.right,
  );
}
