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

const LOSS = 1.9708297811009683;

const PARAMETERS: readonly Parameter[] = [
  {
    name: 'conv',
    shape: [3, 3, 3, 8],
    seed: 1,
    low: -0.5,
    high: 0.5,
    projections: [-8.415693511401, 3.767567072881, -1.305093069915, 1.565710491639],
    norm: 7.299370179339,
  },
  {
    name: 'scale',
    shape: [8],
    seed: 2,
    low: 0.5,
    high: 1.5,
    projections: [0.22185394439, -0.369515934308, 0.829088574131, -1.005944059316],
    norm: 1.493922041691,
  },
  {
    name: 'offset',
    shape: [8],
    seed: 3,
    low: -0.5,
    high: 0.5,
    projections: [0.9211148386, 0.022301731594, 0.338711164049, -1.500480129536],
    norm: 1.231670746053,
  },
  {
    name: 'strided',
    shape: [4, 4, 8, 16],
    seed: 4,
    low: -0.5,
    high: 0.5,
    projections: [5.014098886572, 0.843173897869, -0.631166032909, -2.322767819999],
    norm: 5.781381501635,
  },
  {
    name: 'transposed',
    shape: [2, 2, 4, 16],
    seed: 5,
    low: -0.5,
    high: 0.5,
    projections: [-0.433354102352, -1.43346869727, -3.286839747948, 0.349024389971],
    norm: 6.065920634938,
  },
  {
    name: 'pointwise',
    shape: [1, 1, 12, 1],
    seed: 6,
    low: -0.5,
    high: 0.5,
    projections: [2.542155516476, 1.049542263435, -1.180770549423, -1.760111867126],
    norm: 4.11120912911,
  },
  {
    name: 'dense',
    shape: [64, 5],
    seed: 7,
    low: -0.5,
    high: 0.5,
    projections: [-2.500737777018, -2.082856388728, 0.347288203052, -1.367303812842],
    norm: 4.264153812555,
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
  layer.build([2, 16, 16, 8]);
  // The layer trains weights of its own.
  for (const [i, name] of ['scale', 'offset'].entries()) {
    const own = layer.trainableWeights[i].read() as Variable;
    own.assign(variables[name]);
    variables[name].dispose();
    variables[name] = own;
  }
  const { value, grads } = tf.tidy(() => {
    const x = make([2, 16, 16, 3], 8, 0, 1) as Tensor4D;
    const y = make([2, 5], 9, 0, 1);
    return tf.variableGrads(() => referenceLoss(tf, layer, variables, x, y), Object.values(variables));
  });
  let worst = { error: relativeError((await value.data())[0], LOSS, LOSS), where: 'loss' };
  for (const { name, projections, norm } of PARAMETERS) {
    const gradient = (await grads[variables[name].name].data()) as Float32Array;
    projections.forEach((expected, k) => {
      const direction = values(gradient.length, 20 + k, -1, 1);
      const projection = gradient.reduce((sum, g, i) => sum + g * direction[i], 0);
      const error = relativeError(projection, expected, norm);
      // Written so that a NaN counts as the worst.
      if (!(error <= worst.error)) worst = { error, where: name };
    });
  }
  tf.dispose([value, grads, variables, layer.nonTrainableWeights.map((weight) => weight.read())]);
  return { passed: worst.error <= SELF_TEST_TOLERANCE, ...worst };
}

function relativeError(actual: number, expected: number, scale: number): number {
  return Math.abs(actual - expected) / scale;
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
  const b = tf.relu(tf.conv2d(a, v['strided'] as unknown as Tensor4D, 2, 'same'));
  const up = tf.conv2dTranspose(b, v['transposed'] as unknown as Tensor4D, [2, 16, 16, 4], 2, 'same');
  const mixed = tf.conv2d(tf.concat([a, up], 3), v['pointwise'] as unknown as Tensor4D, 1, 'same');
  // Shifted, so that half of the pooling windows hold no positive value.
  const pooled = tf.maxPool(tf.tanh(tf.sub(mixed, 1)) as Tensor4D, 2, 2, 'valid');
  const output = tf.matMul(tf.reshape(pooled, [2, 64]), v['dense'] as unknown as Tensor);
  return tf.losses.meanSquaredError(y, output);
}
