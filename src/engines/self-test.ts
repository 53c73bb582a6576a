/**
 * An engine is used only if it computes correctly what training and inference need. The reference network has every operation of the
 * models. Its loss, gradients and predictions, and a step of Adam, are compared with those of PyTorch in float64
 * (test/fixtures/training/reference_self_test.py).
 */
import type { Scalar, Tensor, Variable } from '@tensorflow/tfjs-core';
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import { EXPECTED } from './self-test-values.js';
import { adamStep, type Tf } from './tfjs.js';

/** Maximum relative error, relative to the norm of each result. Float32 engines stay near 1e-6. */
const SELF_TEST_TOLERANCE = 1e-4;

interface SelfTestResult {
  passed: boolean;
  /** Largest relative error, infinite for NaN, and the name of that result. */
  error: number;
  where: string;
}

type Layer = LayersModel['layers'][number];

/** Runs the network forward and backward once on the current backend. Throws if the engine lacks an operation. */
export async function selfTest(tf: Tf): Promise<SelfTestResult> {
  const { net, layers } = referenceNet(tf);
  let seed = 1;
  for (const layer of layers)
    tf.tidy(() => layer.setWeights(layer.weights.map(({ name, shape }) => weight(tf, name, shape, seed++))));
  const variables = layers.flatMap(({ trainableWeights }) =>
    trainableWeights.map((one) => one.read() as Variable),
  );
  const results = tf.tidy(() => {
    const x = seeded(tf, [1, 32, 32, 3], 101, 0, 1);
    const terms = termsOf(tf, net, x);
    let kept: Tensor[] = [];
    const loss = () => {
      kept = terms().map((term) => tf.keep(term));
      return kept.reduce((sum, term) => tf.add(sum, term)) as Scalar;
    };
    const { value, grads } = tf.variableGrads(loss, variables);
    const gradients = variables.map(({ name }) => grads[name]);
    const [map, mean, classes] = net.predict(x) as Tensor[];
    const at = variables.findIndex(({ name }) => name.startsWith('first/'));
    const moved = secondAdamStep(tf, variables[at], gradients[at]);
    return [value, ...kept, ...gradients, map, mean, tf.softmax(classes), tf.max(classes, 1), ...moved];
  });
  const found = await Promise.all(results.map((result) => result.data()));
  tf.dispose(results);
  net.dispose();
  let worst = { error: 0, where: '' };
  EXPECTED.forEach(([where, ...expected], i) => {
    const error = relativeError(found[i] as Float32Array, expected);
    if (error > worst.error) worst = { error, where };
  });
  return { passed: worst.error <= SELF_TEST_TOLERANCE, ...worst };
}

/** Returns pseudo-random values: value i = low + (high - low) * fractional part of 43758.5453 * sin(12.9898 * (i + 1) + seed). */
function values(size: number, seed: number, low: number, high: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => {
    const raw = 43758.5453 * Math.sin(12.9898 * (i + 1) + seed);
    return low + (high - low) * (raw - Math.floor(raw));
  });
}

function seeded(tf: Tf, shape: number[], seed: number, low: number, high: number): Tensor {
  return tf.tensor(values(tf.util.sizeFromShape(shape), seed, low, high), shape);
}

/** Kernels preserve the variance of their inputs; factors and variances are positive. */
function weight(tf: Tf, name: string, shape: (number | null)[], seed: number): Tensor {
  const size = shape as number[];
  const limit = size.length === 1 ? 0.5 : Math.sqrt(3 / tf.util.sizeFromShape(size.slice(0, -1)));
  return /gamma|variance/.test(name)
    ? seeded(tf, size, seed, 0.5, 1.5)
    : seeded(tf, size, seed, -limit, limit);
}

/** Returns the largest error of the projections, relative to the norm; infinite for NaN. */
function relativeError(result: Float32Array, [first, second, norm]: [number, number, number]): number {
  const errors = [first, second].map((expected, k) => {
    const direction = values(result.length, 200 + k, -1, 1);
    const projection = result.reduce((sum, value, i) => sum + value * direction[i], 0);
    return Math.abs(projection - expected) / norm;
  });
  return errors.some(Number.isNaN) ? Infinity : Math.max(...errors);
}

/**
 * Builds the reference network. Its outputs are a map, a mean and a value for each of three classes. `layers` are those with weights, in
 * the order of their seeds.
 */
function referenceNet(tf: Tf): { net: LayersModel; layers: Layer[] } {
  const { layers } = tf;
  const weighted: Layer[] = [];
  const apply = (layer: Layer, ...inputs: SymbolicTensor[]) => {
    const y = layer.apply(inputs.length === 1 ? inputs[0] : inputs) as SymbolicTensor;
    if (layer.weights.length > 0) weighted.push(layer);
    return y;
  };
  // The weights are set later.
  const zeros = { kernelInitializer: 'zeros' } as const;
  const conv = (
    name: string,
    x: SymbolicTensor,
    filters: number,
    kernelSize: number | number[],
    change: Partial<Parameters<Tf['layers']['conv2d']>[0]> = {},
  ) => apply(layers.conv2d({ name, filters, kernelSize, padding: 'same', ...zeros, ...change }), x);
  const relu = (x: SymbolicTensor) => apply(layers.reLU({}), x);
  const leaky = (x: SymbolicTensor) => apply(layers.leakyReLU({ alpha: 0.2 }), x);
  const add = (...terms: SymbolicTensor[]) => apply(layers.add({}), ...terms);

  const input = tf.input({ shape: [32, 32, 3] });
  const first = conv('first', conv('mix', input, 3, 1), 8, 3, { activation: 'relu' });
  const strided = conv('strided', first, 8, 4, { strides: 2, useBias: false });
  const normal = apply(layers.batchNormalization({ name: 'norm', momentum: 0.9 }), strided);
  const start = add(leaky(normal), apply(layers.averagePooling2d({ poolSize: 2 }), first));
  const spread = { dilationRate: 2, useBias: false, activation: 'relu' } as const;
  const residual = relu(add(conv('dilated', start, 8, 3, spread), start));
  const scaled = apply(
    layers.depthwiseConv2d({ name: 'scale', kernelSize: 1, depthwiseInitializer: 'zeros' }),
    residual,
  );
  const cropped = apply(layers.cropping2D({ cropping: [[0, 1], [1, 0]] }), scaled); // biome-ignore format: one line
  const shifted = apply(layers.zeroPadding2d({ padding: [[1, 0], [0, 1]] }), cropped); // biome-ignore format: one line
  const attention = conv('weight', residual, 1, 1, { activation: 'sigmoid' });
  const attended = apply(layers.multiply({}), relu(add(shifted, residual)), attention);
  const tiled = leaky(conv('tiled', attended, 8, 3));
  const pooled = apply(layers.maxPooling2d({ poolSize: 2 }), tiled);
  const twice = { filters: 8, kernelSize: 2, strides: 2, padding: 'same', ...zeros } as const;
  const up = apply(layers.conv2dTranspose({ name: 'up', ...twice }), pooled);
  const joined = apply(layers.concatenate({}), tiled, apply(layers.permute({ dims: [2, 1, 3] }), up));
  const map = conv('map', joined, 1, 1);

  const average = apply(layers.globalAveragePooling2d({}), pooled);
  const hidden = apply(layers.dense({ name: 'hidden', units: 8, activation: 'relu', ...zeros }), average);
  const mean = apply(layers.dense({ name: 'mean', units: 1, ...zeros }), hidden);

  const line = apply(layers.reshape({ targetShape: [1, 64, 8] }), pooled);
  const bands = conv('bands', line, 8, [1, 7], { strides: [1, 2], activation: 'relu' });
  const parts = apply(layers.averagePooling2d({ poolSize: [1, 5], strides: [1, 5], padding: 'same' }), bands);
  const ofParts = conv('classes', parts, 3, [1, 7], { padding: 'valid' });
  const classes = apply(layers.globalAveragePooling2d({}), ofParts);
  return { net: tf.model({ inputs: input, outputs: [map, mean, classes] }), layers: weighted };
}

/** Returns the terms of the losses of all models. */
function termsOf(tf: Tf, net: LayersModel, x: Tensor): () => Tensor[] {
  const ofMap = seeded(tf, [1, 16, 16, 1], 102, 0, 1);
  const counts = seeded(tf, [1, 16, 16, 1], 103, 0, 1);
  const ofMean = seeded(tf, [1, 1], 104, 0, 1);
  const ofClasses = seeded(tf, [1, 3], 105, 0, 1);
  const share = (t: Tensor) => tf.div(tf.sum(tf.mul(t, counts)), tf.sum(counts));
  return () => {
    const [map, mean, classes] = net.apply(x, { training: true }) as Tensor[];
    const error = tf.sub(map, ofMap);
    return [
      tf.mul(share(tf.abs(error)), 10),
      share(tf.square(error)),
      tf.mean(tf.softplus(tf.neg(map))),
      tf.mean(tf.square(tf.sub(mean, ofMean))),
      tf.neg(tf.sum(tf.mul(ofClasses, tf.logSoftmax(classes)))),
    ];
  };
}

/**
 * Returns the variable and its moments after the second step of Adam with learning rate 1, betas 0.5 and 0.999, epsilon 0.01 and weight
 * decay 0.5.
 */
function secondAdamStep(tf: Tf, variable: Tensor, gradient: Tensor): Tensor[] {
  const first = seeded(tf, variable.shape, 106, -1, 1);
  const second = seeded(tf, variable.shape, 107, 0, 1);
  const correction = Math.sqrt(1 - 0.999 ** 2);
  const rate = correction / (1 - 0.5 ** 2);
  const numbers = { beta1: 0.5, beta2: 0.999, decay: 0.5, rate, epsilon: 0.01 * correction };
  return adamStep(tf, { variable, gradient, first, second }, numbers);
}
