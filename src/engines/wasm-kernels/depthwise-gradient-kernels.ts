/**
 * Gradients of a depthwise convolution that multiplies each channel by one value, the only kind in the models. The WASM backend lacks the
 * gradients of depthwise convolutions.
 */
import type {
  DepthwiseConv2dNativeBackpropFilterAttrs,
  DepthwiseConv2dNativeBackpropFilterInputs,
  DepthwiseConv2dNativeBackpropInputAttrs,
  DepthwiseConv2dNativeBackpropInputInputs,
  KernelConfig,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { float32View, wasmKernel } from './wasm-kernel.js';

export function depthwiseConv2dBackpropInput(tf: Tf, primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<DepthwiseConv2dNativeBackpropInputInputs, DepthwiseConv2dNativeBackpropInputAttrs>(
    tf.DepthwiseConv2dNativeBackpropInput,
    ({ inputs, attrs, backend }) => {
      assertChannelScale(tf, attrs.inputShape, inputs.filter.shape, attrs);
      const dx = backend.makeOutput(attrs.inputShape, 'float32');
      const [ofDy, scale, toDx] = [inputs.dy, inputs.filter, dx].map((tensor) =>
        float32View(backend, tensor),
      );
      const zeros = new Float32Array(scale.length);
      primitives.scaleChannels(toDx.length / scale.length, scale.length, ofDy, zeros, scale, zeros, toDx);
      return dx;
    },
  );
}

export function depthwiseConv2dBackpropFilter(tf: Tf, primitives: ComputePrimitives): KernelConfig {
  return wasmKernel<DepthwiseConv2dNativeBackpropFilterInputs, DepthwiseConv2dNativeBackpropFilterAttrs>(
    tf.DepthwiseConv2dNativeBackpropFilter,
    ({ inputs, attrs, backend }) => {
      assertChannelScale(tf, inputs.x.shape, attrs.filterShape, attrs);
      const dw = backend.makeOutput(attrs.filterShape, 'float32');
      const [ofX, ofDy, toDw] = [inputs.x, inputs.dy, dw].map((tensor) => float32View(backend, tensor));
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
