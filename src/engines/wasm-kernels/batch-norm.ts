/**
 * Batch normalisation with one mean, variance, scale and offset for each channel, in as few passes as possible; sums, means and biases of
 * channels.
 */
import type {
  AddInputs,
  FusedBatchNormAttrs,
  FusedBatchNormInputs,
  MeanAttrs,
  NamedAttrMap,
  SumAttrs,
  SumInputs,
  Tensor,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { layers } from '@tensorflow/tfjs-layers';
import type { ComputePrimitives } from '../compute-primitives/primitives.js';
import type { Tf } from '../tfjs.js';
import { float32Views, registerWasmKernel } from './kernel.js';

/** Names of kernels that tfjs does not have. */
const TRAINING = 'TrainingBatchNorm';
const TRAINING_GRAD = 'TrainingBatchNormGrad';

type TrainingInputs = Record<'x' | 'scale' | 'offset', TensorInfo>;
type GradientInputs = Record<'x' | 'dy' | 'mean' | 'variance' | 'scale', TensorInfo>;

export function registerBatchNormKernels(tf: Tf, primitives: ComputePrimitives): void {
  // Other shapes stay with the stock kernel.
  registerWasmKernel<FusedBatchNormInputs, FusedBatchNormAttrs>(
    tf,
    tf.FusedBatchNorm,
    ({ inputs: { x, mean, variance, offset, scale }, attrs, backend }) => {
      if (mean.shape.length !== 1) return undefined;
      const y = backend.makeOutput(x.shape, 'float32');
      const [means, variances, ofX, toY] = float32Views(backend, mean, variance, x, y);
      const scales = scale && float32Views(backend, scale)[0];
      const channels = means.length;
      const factors = variances.map((v, c) => (scales?.[c] ?? 1) / Math.sqrt(v + attrs.varianceEpsilon));
      const terms = offset ? float32Views(backend, offset)[0] : new Float32Array(channels);
      primitives.scaleChannels(toY.length / channels, channels, ofX, means, factors, terms, toY);
      return y;
    },
  );
  // Normalises x by its own mean and variance, scales and shifts it. Also returns the mean and the variance.
  registerWasmKernel<TrainingInputs, FusedBatchNormAttrs>(
    tf,
    TRAINING,
    ({ inputs: { x, scale, offset }, attrs, backend }) => {
      const outputs = [x, scale, scale].map(({ shape }) => backend.makeOutput(shape, 'float32'));
      const [toY, mean, variance] = float32Views(backend, ...outputs);
      const [ofX, scales, offsets] = float32Views(backend, x, scale, offset);
      const channels = scales.length;
      const rows = ofX.length / channels;
      primitives.channelMoments(rows, channels, ofX, mean, variance);
      const factors = scales.map((value, c) => value / Math.sqrt(variance[c] + attrs.varianceEpsilon));
      primitives.scaleChannels(rows, channels, ofX, mean, factors, offsets, toY);
      return outputs;
    },
  );
  /**
   * With r = 1 / sqrt(variance + epsilon), N rows and sums over the rows: dOffset = sum dy, dScale = r sum dy (x - mean), dx = scale r
   * (dy - sum dy / N - (x - mean) r² sum dy (x - mean) / N) (Ioffe and Szegedy 2015).
   */
  registerWasmKernel<GradientInputs, FusedBatchNormAttrs>(
    tf,
    TRAINING_GRAD,
    ({ inputs: { x, dy, mean, variance, scale }, attrs, backend }) => {
      const outputs = [x, scale, scale].map(({ shape }) => backend.makeOutput(shape, 'float32'));
      const [dx, dScale, dOffset] = float32Views(backend, ...outputs);
      const [ofX, ofDy, means, variances, scales] = float32Views(backend, x, dy, mean, variance, scale);
      const channels = scales.length;
      const rows = ofX.length / channels;
      const products = new Float32Array(channels);
      primitives.batchNormSums(rows, channels, ofX, ofDy, means, dOffset, products);
      const r = variances.map((value) => 1 / Math.sqrt(value + attrs.varianceEpsilon));
      const factors = scales.map((value, c) => value * r[c]);
      const slopes = factors.map((factor, c) => (-factor * r[c] ** 2 * products[c]) / rows);
      const terms = factors.map((factor, c) => (-factor * dOffset[c]) / rows);
      primitives.batchNormGradient(rows, channels, ofX, ofDy, means, factors, slopes, terms, dx);
      for (let c = 0; c < channels; c++) dScale[c] = products[c] * r[c];
      return outputs;
    },
  );
  // Mean and variance are treated as constants: training depends on them only through y.
  tf.registerGradient({
    kernelName: TRAINING,
    inputsToSave: ['x', 'scale'],
    outputsToSave: [false, true, true],
    gradFunc: (gradients, [x, scale, mean, variance], attrs) => {
      const [dy] = gradients as Tensor[];
      const inputs = { x, dy, mean, variance, scale };
      const made = tf.engine().runKernel(TRAINING_GRAD, inputs, attrs as NamedAttrMap);
      const [dx, dScale, dOffset] = made as unknown as Tensor[];
      return { x: () => dx, scale: () => dScale, offset: () => dOffset };
    },
  });
  replaceTrainingOfBatchNormalization(tf);
}

/** Members of the layer, most of which are declared private. */
interface BatchNormLayer {
  call: ReturnType<typeof layers.batchNormalization>['call'];
  readonly axis: number;
  readonly epsilon: number;
  readonly momentum: number;
  readonly gamma?: Weight;
  readonly beta?: Weight;
  readonly movingMean: Weight;
  readonly movingVariance: Weight;
}
interface Weight {
  read(): Tensor;
  write(value: Tensor): void;
}

/**
 * In training, the layer of tfjs makes about ten passes over its input, and more over its gradient. This replacement uses one kernel for
 * each direction if the axis is the last one. Inference, configuration and saved weights are unchanged.
 */
function replaceTrainingOfBatchNormalization(tf: Tf): void {
  const prototype = Object.getPrototypeOf(tf.layers.batchNormalization({ name: 'any' })) as BatchNormLayer;
  const stock = prototype.call;
  prototype.call = function (this: BatchNormLayer, inputs, kwargs) {
    const x = Array.isArray(inputs) ? inputs[0] : inputs;
    const { axis, epsilon, gamma, beta } = this;
    const isLast = axis === -1 || axis === x.rank - 1;
    if (!kwargs['training'] || !isLast || !gamma || !beta) return stock.call(this, inputs, kwargs);
    return tf.tidy(() => {
      const given = { x, scale: gamma.read(), offset: beta.read() };
      const made = tf.engine().runKernel(TRAINING, given, { varianceEpsilon: epsilon });
      const [y, mean, variance] = made as unknown as Tensor[];
      const updateAverage = (average: Weight, value: Tensor) => {
        const old = average.read();
        average.write(tf.add(old, tf.mul(tf.sub(value, old), 1 - this.momentum)));
      };
      updateAverage(this.movingMean, mean);
      updateAverage(this.movingVariance, variance);
      return y;
    });
  };
}

/**
 * Sums and means of each channel, which batch normalisation and biases compute on large tensors: reductions over all axes before the last,
 * or over those of each image.
 */
export function registerReductionKernels(tf: Tf, primitives: ComputePrimitives): void {
  for (const name of [tf.Sum, tf.Mean])
    registerWasmKernel<SumInputs, SumAttrs & MeanAttrs>(tf, name, ({ inputs: { x }, attrs, backend }) => {
      const channels = x.shape.at(-1) ?? 0;
      const first = firstOfRun(attrs.axis, x.shape.length);
      if (x.dtype !== 'float32' || x.shape.includes(0) || first === undefined) return undefined;
      const outer = x.shape.slice(0, first);
      const images = outer.reduce((all, size) => all * size, 1);
      const rows = x.shape.slice(first, -1).reduce((all, size) => all * size, 1);
      const between = attrs.keepDims ? x.shape.slice(first, -1).map(() => 1) : [];
      const result = backend.makeOutput([...outer, ...between, channels], 'float32');
      // Created for each sum, because a sum may grow the heap, which detaches views.
      const part = (tensor: TensorInfo, size: number, i: number) =>
        float32Views(backend, tensor)[0].subarray(i * size, (i + 1) * size);
      for (let i = 0; i < images; i++)
        primitives.columnSums(rows, channels, part(x, rows * channels, i), part(result, channels, i));
      const [sums] = float32Views(backend, result);
      if (name === tf.Mean && rows !== 1) for (let i = 0; i < sums.length; i++) sums[i] /= rows;
      return result;
    });
}

/** Returns the first axis if the axes are consecutive up to the last but one. */
function firstOfRun(axis: number | number[] | undefined, rank: number): number | undefined {
  if (axis === undefined || rank < 2) return undefined;
  const axes = [axis].flat().map((one) => (one < 0 ? one + rank : one));
  const first = rank - 1 - axes.length;
  return axes.length > 0 && axes.toSorted((a, b) => a - b).every((one, i) => one === first + i)
    ? first
    : undefined;
}

/**
 * Adds a bias to each row in one pass; the stock kernel computes the index of the other operand for each value, and handles all other
 * additions.
 */
export function registerBiasAddKernel(tf: Tf, primitives: ComputePrimitives): void {
  registerWasmKernel<AddInputs, object>(tf, tf.Add, ({ inputs: { a, b }, backend }) => {
    const channels = b.shape[0];
    const isBias =
      [a, b].every(({ dtype }) => dtype === 'float32') &&
      b.shape.length === 1 &&
      a.shape.length > 1 &&
      channels > 0 &&
      a.shape.at(-1) === channels;
    if (!isBias) return undefined;
    const y = backend.makeOutput(a.shape, 'float32');
    const [ofA, ofB, toY] = float32Views(backend, a, b, y);
    const [zeros, ones] = [0, 1].map((value) => new Float32Array(channels).fill(value));
    primitives.scaleChannels(toY.length / channels, channels, ofA, zeros, ones, ofB, toY);
    return y;
  });
}
