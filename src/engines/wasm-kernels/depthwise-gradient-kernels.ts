/**
 * Gradients of a depthwise convolution that multiplies each channel by one value, the only kind in the models. The WASM backend lacks the
 * gradients of depthwise convolutions.
 */
import type {
  DepthwiseConv2dNativeBackpropFilterAttrs,
  DepthwiseConv2dNativeBackpropFilterInputs,
  DepthwiseConv2dNativeBackpropInputAttrs,
  DepthwiseConv2dNativeBackpropInputInputs,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { float32Views, registerWasmKernel } from './wasm-kernel.js';

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

type Shape = [number, number, number, number];

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
