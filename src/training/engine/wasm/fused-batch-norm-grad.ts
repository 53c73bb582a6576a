import type { FusedBatchNormAttrs, GradConfig, NamedAttrMap, Tensor } from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';

/**
 * Gradient of batch normalisation with one mean, variance, scale and offset a channel. The stock gradient repeats these to
 * the size of the input before it multiplies; broadcasting does not. Other shapes stay with `stock`.
 *
 * y = scale * (x - mean) * r + offset with r = 1 / sqrt(variance + epsilon), each taken as an independent input.
 */
export function fusedBatchNormGrad(tf: Tf, stock: GradConfig): GradConfig {
  return {
    ...stock,
    gradFunc: (gradient, saved, attrs) => {
      const [x, mean, variance, scale] = saved as [Tensor, Tensor, Tensor, Tensor | undefined];
      if (mean.rank !== 1) return stock.gradFunc(gradient, saved, attrs);
      const dy = gradient as Tensor;
      const { varianceEpsilon } = attrs as NamedAttrMap & FusedBatchNormAttrs;
      const axes = x.shape.map((_, axis) => axis).slice(0, -1);
      const r = () => tf.rsqrt(tf.add(variance, varianceEpsilon));
      const scaled = (value: Tensor) => (scale === undefined ? value : tf.mul(value, scale));
      const deviation = () => tf.sum(tf.mul(dy, tf.sub(x, mean)), axes);
      return {
        x: () => tf.mul(dy, scaled(r())),
        mean: () => tf.neg(tf.mul(tf.sum(dy, axes), scaled(r()))),
        variance: () => tf.mul(tf.mul(deviation(), -0.5), scaled(tf.pow(r(), 3))),
        scale: () => tf.mul(deviation(), r()),
        offset: () => tf.sum(dy, axes),
      };
    },
  };
}
