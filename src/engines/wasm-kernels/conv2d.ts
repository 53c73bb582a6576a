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
  DepthwiseConv2dNativeBackpropFilterAttrs,
  DepthwiseConv2dNativeBackpropFilterInputs,
  DepthwiseConv2dNativeBackpropInputAttrs,
  DepthwiseConv2dNativeBackpropInputInputs,
  FusedConv2DAttrs,
  FusedConv2DInputs,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import {
  type ComputePrimitives,
  FILTER_GRADIENT,
  FORWARD,
  INPUT_GRADIENT,
} from '../compute-primitives/primitives.js';
import { explicitPadding, type WithDilations } from '../convolutions.js';
import type { Tf } from '../tfjs.js';
import { applyActivation, float32Views, registerWasmKernel } from './kernel.js';

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
    explicitPadding(pad),
    dimRoundingMode,
  );
  const { top, left, bottom, right } = info.padInfo;
  if (Math.min(top, left, bottom, right) < 0)
    throw new Error('a convolution with negative padding is not supported');
  if (
    info.effectiveFilterHeight > info.inHeight + top + bottom ||
    info.effectiveFilterWidth > info.inWidth + left + right
  )
    throw new Error('a convolution whose filter is larger than the padded image is not supported');
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

/**
 * Gradients of a depthwise convolution that multiplies each channel by one value, the only kind in the models. The WASM backend lacks the
 * gradients of depthwise convolutions.
 */
export function registerDepthwiseGradientKernels(tf: Tf, primitives: ComputePrimitives): void {
  registerWasmKernel<DepthwiseConv2dNativeBackpropInputInputs, DepthwiseConv2dNativeBackpropInputAttrs>(
    tf,
    tf.DepthwiseConv2dNativeBackpropInput,
    ({ inputs: { dy, filter }, attrs, backend }) => {
      assertChannelScale(tf, attrs.inputShape, filter.shape, attrs);
      const dx = backend.makeOutput(attrs.inputShape, 'float32');
      const [ofDy, scale, toDx] = float32Views(backend, dy, filter, dx);
      const zeros = new Float32Array(scale.length);
      primitives.scaleChannels(toDx.length / scale.length, scale.length, ofDy, zeros, scale, zeros, toDx);
      return dx;
    },
  );
  registerWasmKernel<DepthwiseConv2dNativeBackpropFilterInputs, DepthwiseConv2dNativeBackpropFilterAttrs>(
    tf,
    tf.DepthwiseConv2dNativeBackpropFilter,
    ({ inputs: { x, dy }, attrs, backend }) => {
      assertChannelScale(tf, x.shape, attrs.filterShape, attrs);
      const dw = backend.makeOutput(attrs.filterShape, 'float32');
      const [ofX, ofDy, toDw] = float32Views(backend, x, dy, dw);
      const zeros = new Float32Array(toDw.length);
      const sums = new Float32Array(toDw.length);
      primitives.batchNormSums(ofX.length / toDw.length, toDw.length, ofX, ofDy, zeros, sums, toDw);
      return dw;
    },
  );
}

/** Throws unless the filter has one tap for each channel, and each output pixel belongs to one input pixel. */
function assertChannelScale(
  tf: Tf,
  input: number[],
  filter: number[],
  { strides, dilations, pad, dimRoundingMode }: Omit<DepthwiseConv2dNativeBackpropInputAttrs, 'inputShape'>,
): void {
  const conv = tf.backend_util.computeConv2DInfo(
    input as Shape,
    filter as Shape,
    strides,
    dilations,
    pad,
    dimRoundingMode,
    true,
  );
  const { filterHeight, filterWidth, strideHeight, strideWidth } = conv;
  const isPointwise = filterHeight * filterWidth * strideHeight * strideWidth === 1;
  if (!isPointwise || String(conv.inShape) !== String(conv.outShape))
    throw new Error('the gradient of a depthwise convolution other than 1 x 1 is not supported');
}
