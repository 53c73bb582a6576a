import type {
  DepthwiseConv2dNativeBackpropInputAttrs,
  DepthwiseConv2dNativeBackpropInputInputs,
  KernelConfig,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../../compute-primitives/compute-primitives.js';
import type { Tf } from '../../tfjs.js';
import { float32View, newZeros, wasmKernel } from '../wasm-kernel.js';
import { forEachTap, isPerChannelScale } from './depthwise-taps.js';

/** Gradient of a depthwise convolution by its input, which the WASM backend lacks. */
export function depthwiseConv2dBackpropInput(tf: Tf, loops: ComputePrimitives): KernelConfig {
  return wasmKernel<DepthwiseConv2dNativeBackpropInputInputs, DepthwiseConv2dNativeBackpropInputAttrs>(
    tf.DepthwiseConv2dNativeBackpropInput,
    ({ inputs, attrs, backend }) => {
      const filterShape = inputs.filter.shape as [number, number, number, number];
      const conv = tf.backend_util.computeConv2DInfo(
        attrs.inputShape,
        filterShape,
        attrs.strides,
        attrs.dilations,
        attrs.pad,
        attrs.dimRoundingMode,
        true,
      );
      if (isPerChannelScale(conv)) {
        const dx = backend.makeOutput(attrs.inputShape, 'float32');
        const [ofDy, scale, toDx] = [inputs.dy, inputs.filter, dx].map((tensor) =>
          float32View(backend, tensor),
        );
        const none = new Float32Array(scale.length);
        loops.scaleChannels(toDx.length / scale.length, scale.length, ofDy, none, scale, none, toDx);
        return dx;
      }
      const output = newZeros(backend, attrs.inputShape);
      const dx = output.clear();
      const dy = float32View(backend, inputs.dy);
      const filter = float32View(backend, inputs.filter);
      const multiplier = filterShape[3];
      forEachTap(conv, (to, fromDy, fromFilter) => {
        for (let o = 0, c = 0; c < conv.inChannels; c++) {
          for (let m = 0; m < multiplier; m++, o++) dx[to + c] += filter[fromFilter + o] * dy[fromDy + o];
        }
      });
      return output.tensor;
    },
  );
}
