/** Batch normalisation with one mean, variance, scale and offset a channel: one pass over the input, and two for its gradient. */
import type {
  FusedBatchNormAttrs,
  FusedBatchNormInputs,
  GradConfig,
  KernelConfig,
  NamedAttrMap,
  Tensor,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';
import { floats, wasmKernel } from '../wasm/kernel.js';
import type { OneDnn } from './addon.js';

/** Kernels that tfjs does not have. */
const SUMS = 'BatchNormSums';
const SCALED = 'ScaledChannels';

/** Other shapes stay with `stock`. */
export function fusedBatchNorm(tf: Tf, dnn: OneDnn, stock: KernelConfig): KernelConfig {
  return wasmKernel<FusedBatchNormInputs, FusedBatchNormAttrs>(
    tf.FusedBatchNorm,
    ({ inputs, attrs, backend }) => {
      const { x, mean, variance, offset, scale } = inputs;
      if (mean.shape.length !== 1)
        return stock.kernelFunc({ inputs: { ...inputs }, attrs: { ...attrs }, backend }) as TensorInfo;
      const y = backend.makeOutput(x.shape, 'float32');
      const [means, variances] = [mean, variance].map((tensor) => floats(backend, tensor));
      const scales = scale && floats(backend, scale);
      const offsets = offset && floats(backend, offset);
      const factors = variances.map((v, c) => (scales?.[c] ?? 1) / Math.sqrt(v + attrs.varianceEpsilon));
      const terms = offsets ?? new Float32Array(means.length);
      const channels = means.length;
      const [ofX, toY] = [x, y].map((tensor) => floats(backend, tensor));
      dnn.scaleChannels(toY.length / channels, channels, ofX, means, factors, terms, toY);
      return y;
    },
  );
}

export function batchNormSums(dnn: OneDnn): KernelConfig {
  return wasmKernel<{ x: TensorInfo; dy: TensorInfo; mean: TensorInfo }, object>(
    SUMS,
    ({ inputs: { x, dy, mean }, backend }) => {
      const channels = mean.shape[0];
      const outputs = [0, 1].map(() => backend.makeOutput([channels], 'float32'));
      const [ofX, ofDy, means, sums, products] = [x, dy, mean, ...outputs].map((one) => floats(backend, one));
      dnn.batchNormSums(ofX.length / channels, channels, ofX, ofDy, means, sums, products);
      return outputs;
    },
  );
}

export function scaledChannels(dnn: OneDnn): KernelConfig {
  return wasmKernel<{ x: TensorInfo; scale: TensorInfo }, object>(
    SCALED,
    ({ inputs: { x, scale }, backend }) => {
      const y = backend.makeOutput(x.shape, 'float32');
      const [ofX, scales, toY] = [x, scale, y].map((tensor) => floats(backend, tensor));
      const channels = scales.length;
      const none = new Float32Array(channels);
      dnn.scaleChannels(toY.length / channels, channels, ofX, none, scales, none, toY);
      return y;
    },
  );
}

/** The formula is that of `fusedBatchNormGrad`, to which other shapes are left as `stock`. */
export function fusedBatchNormGrad(tf: Tf, stock: GradConfig): GradConfig {
  return {
    ...stock,
    gradFunc: (gradient, saved, attrs) => {
      const [x, mean, variance, scale] = saved as [Tensor, Tensor, Tensor, Tensor | undefined];
      if (mean.rank !== 1) return stock.gradFunc(gradient, saved, attrs);
      const dy = gradient as Tensor;
      const { varianceEpsilon } = attrs as NamedAttrMap & FusedBatchNormAttrs;
      const r = tf.rsqrt(tf.add(variance, varianceEpsilon));
      const factor = scale === undefined ? r : tf.mul(r, scale);
      const [sums, products] = tf.engine().runKernel(SUMS, { x, dy, mean }) as unknown as [Tensor, Tensor];
      return {
        x: () => tf.engine().runKernel(SCALED, { x: dy, scale: factor }) as Tensor,
        mean: () => tf.neg(tf.mul(sums, factor)),
        variance: () => tf.mul(tf.mul(products, -0.5), tf.mul(factor, tf.square(r))),
        scale: () => tf.mul(products, r),
        offset: () => sums,
      };
    },
  };
}
