import type { Conv2DAttrs, GradConfig, NamedAttrMap, Tensor, Tensor4D } from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';

/** Attribute of the kernels of the two gradients that tfjs does not declare. */
export interface WithDilations {
  /** Distance between the taps of the filter. Default: 1. */
  dilations?: Conv2DAttrs['dilations'];
}

/** Gradient of `Conv2D` or of a linear `FusedConv2D`, including dilated ones, which the stock gradient refuses. */
export function conv2dGrad(tf: Tf, kernelName: string): GradConfig {
  return {
    kernelName,
    inputsToSave: ['x', 'filter'],
    gradFunc: (gradient, saved, attrs) => {
      const [x, filter] = saved as [Tensor4D, Tensor4D];
      const dy = gradient as Tensor4D;
      const { strides, pad, dataFormat, dimRoundingMode, dilations } = attrs as NamedAttrMap & Conv2DAttrs;
      const shared = { strides, pad, dataFormat, dimRoundingMode, dilations };
      const run = (name: string, inputs: Record<string, Tensor>, more: object) =>
        tf.engine().runKernel(name, inputs, { ...shared, ...more } as NamedAttrMap) as Tensor;
      return {
        x: () => run(tf.Conv2DBackpropInput, { dy, filter }, { inputShape: x.shape }),
        filter: () => run(tf.Conv2DBackpropFilter, { x, dy }, { filterShape: filter.shape }),
        bias: () => tf.sum(dy, [0, 1, 2]),
      };
    },
  };
}
