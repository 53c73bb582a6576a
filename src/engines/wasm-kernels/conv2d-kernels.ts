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
import { float32Views, registerWasmKernel } from './wasm-kernel.js';

type Shape = [number, number, number, number];

export function registerConvolutionKernels(tf: Tf, primitives: ComputePrimitives): void {
  const forward = (
    backend: BackendWasm,
    x: TensorInfo,
    filter: TensorInfo,
    bias: TensorInfo | undefined,
    attrs: Conv2DAttrs,
  ) => {
    const info = infoOf(tf, x.shape, filter.shape, attrs);
    const y = backend.makeOutput(info.outShape, 'float32');
    const [ofX, ofFilter, toY] = float32Views(backend, x, filter, y);
    const ofBias = bias ? float32Views(backend, bias)[0] : null;
    primitives.convolve(FORWARD, geometryOf(info), ofX, ofFilter, toY, ofBias);
    return y;
  };
  registerWasmKernel<Conv2DInputs, Conv2DAttrs>(tf, tf.Conv2D, ({ inputs: { x, filter }, attrs, backend }) =>
    forward(backend, x, filter, undefined, attrs),
  );
  registerWasmKernel<FusedConv2DInputs, FusedConv2DAttrs>(
    tf,
    tf.FusedConv2D,
    ({ inputs: { x, filter, bias, preluActivationWeights }, attrs, backend }) => {
      const y = forward(backend, x, filter, bias, attrs);
      return applyActivation(tf, backend, y, attrs, preluActivationWeights);
    },
  );
  registerWasmKernel<Conv2DBackpropInputInputs, Conv2DBackpropInputAttrs & WithDilations>(
    tf,
    tf.Conv2DBackpropInput,
    ({ inputs: { dy, filter }, attrs, backend }) => {
      const dx = backend.makeOutput(attrs.inputShape, 'float32');
      const info = infoOf(tf, attrs.inputShape, filter.shape, attrs);
      const [toDx, ofFilter, ofDy] = float32Views(backend, dx, filter, dy);
      primitives.convolve(INPUT_GRADIENT, geometryOf(info), toDx, ofFilter, ofDy, null);
      return dx;
    },
  );
  registerWasmKernel<Conv2DBackpropFilterInputs, Conv2DBackpropFilterAttrs & WithDilations>(
    tf,
    tf.Conv2DBackpropFilter,
    ({ inputs: { x, dy }, attrs, backend }) => {
      const dw = backend.makeOutput(attrs.filterShape, 'float32');
      const info = infoOf(tf, x.shape, attrs.filterShape, attrs);
      const [ofX, toDw, ofDy] = float32Views(backend, x, dw, dy);
      primitives.convolve(FILTER_GRADIENT, geometryOf(info), ofX, toDw, ofDy, null);
      return dw;
    },
  );
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
