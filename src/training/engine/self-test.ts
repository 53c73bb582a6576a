/**
 * An engine trains only if its gradients are right. This net holds each operation that the models need; its loss and
 * gradients were computed in float64 by PyTorch (test/fixtures/training/reference_gradients.py).
 */
import type { Scalar, Tensor, Tensor4D, Variable } from '@tensorflow/tfjs-core';
import type { Tf } from './tf.js';

/** Largest error that passes, relative to the size of each gradient. Float32 engines stay near 1e-6. */
const SELF_TEST_TOLERANCE = 1e-4;

export interface SelfTestResult {
  passed: boolean;
  /** Largest relative error, and the parameter that it was seen at (`loss` for the forward pass). */
  error: number;
  where: string;
}

interface Parameter {
  name: string;
  shape: number[];
  seed: number;
  low: number;
  high: number;
  /** The true gradient's projections on four fixed directions, and its Euclidean norm. */
  projections: [number, number, number, number];
  norm: number;
}

const LOSS = 9.304887759550532;

const PARAMETERS: readonly Parameter[] = [
  {
    name: 'conv',
    shape: [3, 3, 3, 8],
    seed: 1,
    low: -0.5,
    high: 0.5,
    projections: [-61.079206670635, 29.039751021663, 8.737095249593, -18.338389889301],
    norm: 69.412599503142,
  },
  {
    name: 'scale',
    shape: [8],
    seed: 2,
    low: 0.5,
    high: 1.5,
    projections: [0.744099248205, -14.42965096858, 4.402262513156, -16.902914761196],
    norm: 21.904326251251,
  },
  {
    name: 'offset',
    shape: [8],
    seed: 3,
    low: -0.5,
    high: 0.5,
    projections: [-3.485501253838, -11.856196526058, 7.026619785741, -10.769534552917],
    norm: 13.538674016651,
  },
  {
    name: 'tiled',
    shape: [3, 3, 8, 8],
    seed: 10,
    low: -0.5,
    high: 0.5,
    projections: [-38.803965296849, 2.605463013518, 17.184272209339, -28.18391855528],
    norm: 54.237619058322,
  },
  {
    name: 'strided',
    shape: [4, 4, 8, 16],
    seed: 4,
    low: -0.5,
    high: 0.5,
    projections: [-28.701204476069, -30.228012578289, 47.838943629169, -49.560387157194],
    norm: 59.813039676889,
  },
  {
    name: 'transposed',
    shape: [2, 2, 4, 16],
    seed: 5,
    low: -0.5,
    high: 0.5,
    projections: [-22.767938302171, -9.974601496655, 50.460740784412, 54.574448331882],
    norm: 62.301696875143,
  },
  {
    name: 'pointwise',
    shape: [1, 1, 12, 1],
    seed: 6,
    low: -0.5,
    high: 0.5,
    projections: [45.757761013644, 10.798263776725, 16.312256650093, 9.161438026442],
    norm: 54.293679155674,
  },
  {
    name: 'dense',
    shape: [256, 5],
    seed: 7,
    low: -0.5,
    high: 0.5,
    projections: [0.504556608182, -5.624841236988, -20.292853419331, 2.315583163159],
    norm: 29.641613701144,
  },
];

/** Value i = low + (high - low) * fractional part of 43758.5453 * sin(12.9898 * (i + 1) + seed). */
function values(size: number, seed: number, low: number, high: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => {
    const raw = 43758.5453 * Math.sin(12.9898 * (i + 1) + seed);
    return low + (high - low) * (raw - Math.floor(raw));
  });
}

/** Runs the net forward and backward once on the current backend. An operation that the engine lacks throws. */
export async function gradientSelfTest(tf: Tf): Promise<SelfTestResult> {
  const make = (shape: number[], seed: number, low: number, high: number) =>
    tf.tensor(values(tf.util.sizeFromShape(shape), seed, low, high), shape);
  const variables = Object.fromEntries(
    PARAMETERS.map(({ name, shape, seed, low, high }) => [
      name,
      tf.tidy(() => tf.variable(make(shape, seed, low, high))),
    ]),
  );
  const layer = tf.layers.batchNormalization({ epsilon: 1e-3, name: 'self-test' });
  layer.build([1, 32, 32, 8]);
  // The layer trains weights of its own.
  for (const [i, name] of ['scale', 'offset'].entries()) {
    const own = layer.trainableWeights[i].read() as Variable;
    own.assign(variables[name]);
    variables[name].dispose();
    variables[name] = own;
  }
  const { value, grads } = tf.tidy(() => {
    const x = make([1, 32, 32, 3], 8, 0, 1) as Tensor4D;
    const y = make([1, 5], 9, 0, 1);
    return tf.variableGrads(() => referenceLoss(tf, layer, variables, x, y), Object.values(variables));
  });
  let worst = { error: relativeError((await value.data())[0], LOSS, LOSS), where: 'loss' };
  for (const { name, projections, norm } of PARAMETERS) {
    const gradient = (await grads[variables[name].name].data()) as Float32Array;
    projections.forEach((expected, k) => {
      const direction = values(gradient.length, 20 + k, -1, 1);
      const projection = gradient.reduce((sum, g, i) => sum + g * direction[i], 0);
      const error = relativeError(projection, expected, norm);
      if (error > worst.error) worst = { error, where: name };
    });
  }
  tf.dispose([value, grads, variables, layer.nonTrainableWeights.map((weight) => weight.read())]);
  return { passed: worst.error <= SELF_TEST_TOLERANCE, ...worst };
}

/** Infinite for NaN. */
function relativeError(actual: number, expected: number, scale: number): number {
  const error = Math.abs(actual - expected) / scale;
  return Number.isNaN(error) ? Infinity : error;
}

function referenceLoss(
  tf: Tf,
  layer: ReturnType<Tf['layers']['batchNormalization']>,
  v: Record<string, Variable>,
  x: Tensor4D,
  y: Tensor,
): Scalar {
  const first = tf.conv2d(x, v['conv'] as unknown as Tensor4D, 1, 'same');
  const normalised = layer.apply(first, { training: true }) as Tensor4D;
  const a = tf.leakyRelu(normalised, 0.2);
  const c = tf.leakyRelu(tf.conv2d(a, v['tiled'] as unknown as Tensor4D, 1, 'same'), 0.2);
  const b = tf.relu(tf.conv2d(c, v['strided'] as unknown as Tensor4D, 2, 'same'));
  const up = tf.conv2dTranspose(b, v['transposed'] as unknown as Tensor4D, [1, 32, 32, 4], 2, 'same');
  const mixed = tf.conv2d(tf.concat([a, up], 3), v['pointwise'] as unknown as Tensor4D, 1, 'same');
  // Shifted, so that most pooling windows hold no positive value.
  const pooled = tf.maxPool(tf.tanh(tf.sub(mixed, 1)) as Tensor4D, 2, 2, 'valid');
  const output = tf.matMul(tf.reshape(pooled, [1, 256]), v['dense'] as unknown as Tensor);
  return tf.losses.meanSquaredError(y, output);
}
