import type {
  DepthwiseConv2dNativeBackpropInputAttrs,
  DepthwiseConv2dNativeBackpropInputInputs,
  KernelConfig,
} from '@tensorflow/tfjs-core';
import type { Loops } from '../../compute-primitives/compute-primitives.js';
import type { Tf } from '../../tfjs.js';
import { floats, wasmKernel, zeros } from '../wasm-kernel.js';
import { forEachTap, scalesChannels } from './depthwise-taps.js';

/** Gradient of a depthwise convolution by its input, which the WASM backend lacks. */
export function depthwiseConv2dBackpropInput(tf: Tf, loops: Loops): KernelConfig {
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
      if (scalesChannels(conv)) {
        const dx = backend.makeOutput(attrs.inputShape, 'float32');
        const [ofDy, scale, toDx] = [inputs.dy, inputs.filter, dx].map((tensor) => floats(backend, tensor));
        const none = new Float32Array(scale.length);
        loops.scaleChannels(toDx.length / scale.length, scale.length, ofDy, none, scale, none, toDx);
        return dx;
      }
      const output = zeros(backend, attrs.inputShape);
      const dx = output.clear();
      const dy = floats(backend, inputs.dy);
      const filter = floats(backend, inputs.filter);
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
