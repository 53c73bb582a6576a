/**
 * Contract of every training engine: values and gradients of single operations against PyTorch
 * (test/fixtures/training/reference_ops.py), and the gradients of the reference net.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import type { Tensor, Tensor3D, Tensor4D } from '@tensorflow/tfjs-core';
import { type EngineName, loadEngine } from '../../src/engines/load.js';
import { selfTest } from '../../src/engines/self-test.js';
import type { Tf } from '../../src/engines/tfjs.js';
import { Adam, lossAndGradients } from '../../src/training/learner.js';

interface Reference {
  inputs: { shape: number[]; low: number; high: number }[];
  shape: number[];
  value: number[];
  gradients: number[][];
}

type Operation = (tf: Tf, ...inputs: Tensor[]) => Tensor;

const conv =
  (stride: number, pad: 'same' | 'valid' | number): Operation =>
  (tf, x, f) =>
    tf.conv2d(x as Tensor4D, f as Tensor4D, stride, pad);

/** One operation where no gradient is asked for, and with a linear activation also where one is. */
const fusedConv =
  (activation: 'linear' | 'leakyrelu'): Operation =>
  (tf, x, f, bias) =>
    tf.fused.conv2d({
      x: x as Tensor4D,
      filter: f as Tensor4D,
      bias: bias!,
      strides: 1,
      pad: 'same',
      activation,
      leakyreluAlpha: 0.2,
    });

const convTranspose =
  (stride: number): Operation =>
  (tf, x, f) => {
    const [batch, rows, columns] = (x as Tensor4D).shape;
    const channels = (f as Tensor4D).shape[2];
    return tf.conv2dTranspose(
      x as Tensor4D,
      f as Tensor4D,
      [batch, rows * stride, columns * stride, channels],
      stride,
      'same',
    );
  };

const OPERATIONS: Record<string, Operation> = {
  maxPool2: (tf, x) => tf.maxPool(x as Tensor4D, 2, 2, 'valid'),
  'maxPool2 of negative values': (tf, x) => tf.maxPool(x as Tensor4D, 2, 2, 'valid'),
  'maxPool3 stride 2 same': (tf, x) => tf.maxPool(x as Tensor4D, 3, 2, 'same'),
  avgPool2: (tf, x) => tf.avgPool(x as Tensor4D, 2, 2, 'valid'),
  'conv3 same': conv(1, 'same'),
  'conv3 valid': conv(1, 'valid'),
  'conv3 stride 2 same': conv(2, 'same'),
  'conv3 stride 2 valid': conv(2, 'valid'),
  'conv4 stride 2 same': conv(2, 'same'),
  conv1: conv(1, 'same'),
  'conv1 stride 2': conv(2, 'same'),
  'conv1 padded by 1': conv(1, 1),
  'conv3 padded by 2': conv(1, 2),
  'conv3 with a bias': fusedConv('linear'),
  'conv3 with a bias and leaky ReLU': fusedConv('leakyrelu'),
  'conv3 dilated by 2': (tf, x, f) => tf.conv2d(x as Tensor4D, f as Tensor4D, 1, 'same', 'NHWC', 2),
  'conv3 dilated by 2, valid': (tf, x, f) => tf.conv2d(x as Tensor4D, f as Tensor4D, 1, 'valid', 'NHWC', 2),
  'conv3 of 9 to 17 channels': conv(1, 'same'),
  'conv3 of 8 to 16 channels': conv(1, 'same'),
  'conv3 of 16 to 8 channels, valid': conv(1, 'valid'),
  'conv3 of 8 channels dilated by 2': (tf, x, f) =>
    tf.conv2d(x as Tensor4D, f as Tensor4D, 1, 'same', 'NHWC', 2),
  'convTranspose2 stride 2': convTranspose(2),
  'convTranspose3 stride 2': convTranspose(2),
  'convTranspose4 stride 2': convTranspose(2),
  'convTranspose3 stride 1': convTranspose(1),
  depthwise1: (tf, x, f) => tf.depthwiseConv2d(x as Tensor4D, f as Tensor4D, 1, 'same'),
  batchNorm: (tf, x, scale, offset) => {
    const { mean, variance } = tf.moments(x!, [0, 1, 2]);
    return tf.batchNorm(x!, mean, variance, offset, scale, 1e-3);
  },
  'batchNorm layer in training': (tf, x, scale, offset) => {
    const layer = tf.layers.batchNormalization({ epsilon: 1e-3 });
    layer.build(x!.shape);
    // Tensors in place of its weights, so that gradients by them can be asked for.
    Object.assign(layer, { gamma: { read: () => scale }, beta: { read: () => offset } });
    return layer.apply(x!, { training: true }) as Tensor;
  },
  relu: (tf, x) => tf.relu(x!),
  leakyRelu: (tf, x) => tf.leakyRelu(x!, 0.2),
  elu: (tf, x) => tf.elu(x!),
  tanh: (tf, x) => tf.tanh(x!),
  sigmoid: (tf, x) => tf.sigmoid(x!),
  softplus: (tf, x) => tf.softplus(x!),
  softmax: (tf, x) => tf.softmax(x!),
  concat: (tf, a, b) => tf.concat([a!, b!], 3),
  'concat of rows': (tf, a, b) => tf.concat([a!, b!], 1),
  split: (tf, x) => {
    const [first, others] = tf.split(x!, [1, 2], 3) as [Tensor, Tensor];
    return tf.mul(first, others);
  },
  'multiply by one channel': (tf, a, b) => tf.mul(a!, b!),
  matMul: (tf, a, b) => tf.matMul(a!, b!),
  'matMul of transposed a': (tf, a, b) => tf.matMul(a!, b!, true),
  'matMul of transposed b': (tf, a, b) => tf.matMul(a!, b!, false, true),
  'matMul of both transposed': (tf, a, b) => tf.matMul(a!, b!, true, true),
  'matMul in batches': (tf, a, b) => tf.matMul(a as Tensor3D, b as Tensor3D),
  'matMul with a bias and ReLU': (tf, a, b, bias) =>
    tf.fused.matMul({ a: a!, b: b!, bias: bias!, activation: 'relu', transposeA: false, transposeB: false }),
  mean: (tf, x) => tf.mean(x!, [1, 2]),
  'mean of channels': (tf, x) => tf.mean(x!, [0, 1, 2]),
  'sum of channels': (tf, x) => tf.sum(x!, [0, 1, 2]),
  max: (tf, x) => tf.max(x!, 3),
  abs: (tf, x) => tf.abs(x!),
  slice: (tf, x) => tf.slice(x!, [0, 1, 1, 1], [2, 3, 4, 1]),
  pad: (tf, x) =>
    tf.pad(x!, [
      [0, 0],
      [1, 1],
      [1, 1],
      [0, 0],
    ]),
  'shift by a row': (tf, x) =>
    tf.pad(tf.slice(x!, [0, 0, 0, 0], [-1, 4, -1, -1]), [
      [0, 0],
      [1, 0],
      [0, 0],
      [0, 0],
    ]),
  'shift by a column': (tf, x) =>
    tf.pad(tf.slice(x!, [0, 0, 1, 0]), [
      [0, 0],
      [0, 0],
      [0, 1],
      [0, 0],
    ]),
  resizeBilinear: (tf, x) => tf.image.resizeBilinear(x as Tensor4D, [10, 12], true),
  resizeNearestNeighbor: (tf, x) => tf.image.resizeNearestNeighbor(x as Tensor4D, [10, 12]),
  transpose: (tf, x) => tf.transpose(x!, [0, 3, 1, 2]),
  div: (tf, a, b) => tf.div(a!, b!),
  log: (tf, x) => tf.log(x!),
  meanSquaredError: (tf, a, b) => tf.losses.meanSquaredError(a!, b!),
};

const ADAM_IN_PYTORCH = [0.2164191, -1.305101, 1.703216, -0.004937413, -2.702088];

const references: Record<string, Reference> = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/training/ops.json', import.meta.url), 'utf8'),
);

/** The formula of reference_ops.py. */
function values(size: number, seed: number, low = -1, high = 1): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => {
    const raw = 43758.5453 * Math.sin(12.9898 * (i + 1) + seed);
    return low + (high - low) * (raw - Math.floor(raw));
  });
}

/** Why an engine cannot be tested here, or `undefined`. */
export async function reasonToSkip(name: EngineName): Promise<string | undefined> {
  const { selectEngine } = await import('../../src/engines/select.js');
  try {
    await selectEngine({ engine: name });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Registers the tests of one engine. Engines do not share a process, so each has a test file of its own. */
export function engineContract(name: EngineName): void {
  describe(`training engine ${name}`, () => {
    let tf: Tf;
    before(async () => {
      ({ tf } = await loadEngine(name));
    });

    it('passes the self-test', async () => {
      const result = await selfTest(tf);
      assert.ok(result.passed, `${result.where}: ${result.error}`);
    });

    it('leaves no tensors behind', async () => {
      const before = tf.memory().numTensors;
      await selfTest(tf);
      assert.equal(tf.memory().numTensors, before);
    });

    it('is tested on every reference', () => {
      assert.deepEqual(Object.keys(OPERATIONS).sort(), Object.keys(references).sort());
    });

    it('averages the moments of batches, and saves batch normalisation like tfjs', () => {
      const layer = tf.layers.batchNormalization({ momentum: 0.9 });
      const x = tf.tensor(values(3 * 4 * 2, 1), [3, 4, 2]);
      layer.apply(x, { training: true });
      layer.apply(x, { training: true });
      const { mean, variance } = tf.moments(x, [0, 1]);
      const [, , movingMean, movingVariance] = layer.getWeights();
      const twice = (start: number, value: number) => 0.9 * (0.9 * start + 0.1 * value) + 0.1 * value;
      close(
        movingMean!.dataSync(),
        Array.from(mean.dataSync(), (value) => twice(0, value)),
        'mean',
      );
      close(
        movingVariance!.dataSync(),
        Array.from(variance.dataSync(), (value) => twice(1, value)),
        'variance',
      );
      assert.equal(layer.getClassName(), 'BatchNormalization');
    });

    it('matches Adam of PyTorch', async () => {
      // torch.optim.Adam([w], 0.1, (0.5, 0.999), 1e-7, weight_decay=0.01) on the sum of factor w² / 2, three steps.
      const factor = tf.tensor1d([1, -2, 3, 0.5, 1]);
      const w = tf.tidy(() => tf.variable(tf.tensor1d([0.5, -1, 2, 0.25, -3])));
      const adam = new Adam(tf, [w], { beta1: 0.5, weightDecay: 0.01 });
      const loss = () => tf.sum(tf.mul(factor, tf.mul(tf.square(w), 0.5)));
      for (let step = 1; step <= 3; step++)
        await adam.minimiseStep(lossAndGradients(tf, [w], loss), { learningRate: 0.1, step });
      close(w.dataSync(), ADAM_IN_PYTORCH, 'w');
    });

    for (const [operation, compute] of Object.entries(OPERATIONS)) {
      it(`${operation}: value and gradients`, () => {
        const reference = references[operation]!;
        const inputs = reference.inputs.map(({ shape, low, high }, k) =>
          tf.tensor(values(tf.util.sizeFromShape(shape), k + 1, low, high), shape),
        );
        const value = tf.tidy(() => compute(tf, ...inputs));
        assert.deepEqual(value.shape, reference.shape);
        close(value.dataSync(), reference.value, 'value');
        const dy = tf.tensor(values(value.size, 11), value.shape);
        tf.grads((...xs: Tensor[]) => compute(tf, ...xs))(inputs, dy).forEach((gradient, k) => {
          close(gradient.dataSync(), reference.gradients[k]!, `gradient of input ${k}`);
        });
      });
    }
  });
}

function close(actual: ArrayLike<number>, expected: number[], what: string): void {
  assert.equal(actual.length, expected.length, what);
  const size = Math.max(...expected.map(Math.abs));
  expected.forEach((value, i) => {
    // Written so that a NaN fails.
    const right = Math.abs(actual[i]! - value) <= 1e-5 * size;
    assert.ok(right, `${what}[${i}] is ${actual[i]}, not ${value}`);
  });
}
