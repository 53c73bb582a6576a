import type {
  DepthwiseConv2dNativeBackpropFilterAttrs,
  DepthwiseConv2dNativeBackpropFilterInputs,
  KernelConfig,
} from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../../compute-primitives/compute-primitives.js';
import type { Tf } from '../../tfjs.js';
import { float32View, newZeros, wasmKernel } from '../wasm-kernel.js';
import { forEachTap, isPerChannelScale } from './depthwise-taps.js';

/** Gradient of a depthwise convolution by its filter [height, width, channels, multiplier], which the WASM backend lacks. */
export function depthwiseConv2dBackpropFilter(tf: Tf, loops: ComputePrimitives): KernelConfig {
  return wasmKernel<DepthwiseConv2dNativeBackpropFilterInputs, DepthwiseConv2dNativeBackpropFilterAttrs>(
    tf.DepthwiseConv2dNativeBackpropFilter,
    ({ inputs, attrs, backend }) => {
      const conv = tf.backend_util.computeConv2DInfo(
        inputs.x.shape as [number, number, number, number],
        attrs.filterShape,
        attrs.strides,
        attrs.dilations,
        attrs.pad,
        attrs.dimRoundingMode,
        true,
      );
      if (isPerChannelScale(conv)) {
        const dw = backend.makeOutput(attrs.filterShape, 'float32');
        const [ofX, ofDy, toDw] = [inputs.x, inputs.dy, dw].map((tensor) => float32View(backend, tensor));
        const [none, sums] = [0, 1].map(() => new Float32Array(toDw.length));
        loops.batchNormSums(ofX.length / toDw.length, toDw.length, ofX, ofDy, none, sums, toDw);
        return dw;
      }
      const output = newZeros(backend, attrs.filterShape);
      const dw = output.clear();
      const x = float32View(backend, inputs.x);
      const dy = float32View(backend, inputs.dy);
      const multiplier = attrs.filterShape[3];
      forEachTap(conv, (fromX, fromDy, to) => {
        for (let o = 0, c = 0; c < conv.inChannels; c++) {
          for (let m = 0; m < multiplier; m++, o++) dw[to + o] += x[fromX + c] * dy[fromDy + o];
        }
      });
      return output.tensor;
    },
  );
}
