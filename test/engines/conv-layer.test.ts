/** A process that has loaded the engine, and made nothing else of it: the convolution layer, and memory that runs out. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type { Tensor, Tensor4D, Variable } from '@tensorflow/tfjs-core';
import { loadEngine } from '../../src/engines/load.js';
import { beforeTests } from '../support/before-tests.js';

const { tf } = await beforeTests(loadEngine('wasm'));

it('matches the plain operations, without a pass for the bias and without unused gradients', async () => {
  const inputShape: [number, number, number] = [9, 8, 3];
  const options = { kernelSize: 3, padding: 'same', biasInitializer: 'randomNormal' } as const;
  const net = tf.sequential({
    layers: [
      tf.layers.conv2d({ ...options, inputShape, filters: 8, activation: 'relu' }),
      tf.layers.conv2d({ ...options, filters: 8, dilationRate: 2 }),
      tf.layers.conv2d({ ...options, filters: 5, useBias: false, activation: 'tanh', strides: 2 }),
    ],
  });
  const [w1, b1, w2, b2, w3] = net.trainableWeights.map((one) => one.read() as Variable) as [
    Variable,
    Variable,
    Variable,
    Variable,
    Variable,
  ];
  const x = tf.randomUniform([2, ...inputShape], -1, 1, 'float32', 1) as Tensor4D;
  const operations = () => {
    const first = tf.relu(tf.add(tf.conv2d(x, w1 as unknown as Tensor4D, 1, 'same'), b1));
    const second = tf.add(tf.conv2d(first as Tensor4D, w2 as unknown as Tensor4D, 1, 'same', 'NHWC', 2), b2);
    return tf.tanh(tf.conv2d(second as Tensor4D, w3 as unknown as Tensor4D, 2, 'same'));
  };
  const gradients = (compute: () => Tensor) =>
    tf.variableGrads(() => tf.sum(tf.square(compute())), [w1, b1, w2, b2, w3]);
  const expected = gradients(operations);
  const { kernels, result } = await tf.profile(() => {
    const { value, grads } = gradients(() => net.apply(x, { training: true }) as Tensor);
    return { value, ...grads } as never;
  });
  const found = result as unknown as Record<string, Tensor>;
  const same = (a: Tensor, b: Tensor) => {
    const [ofA, ofB] = [a, b].map((one) => one.dataSync()) as [Float32Array, Float32Array];
    const size = ofB.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    ofA.forEach((value, i) => {
      assert.ok(Math.abs(value - ofB[i]!) <= 1e-5 * size, `${value} in place of ${ofB[i]}`);
    });
  };
  same(found['value']!, expected.value);
  for (const { name } of [w1, b1, w2, b2, w3]) same(found[name]!, expected.grads[name]!);
  const count = (kernel: string) => kernels.filter(({ name }) => name === kernel).length;
  assert.deepEqual([count('FusedConv2D'), count('Add'), count('Conv2DBackpropInput')], [3, 0, 2]);
});

it('throws if there is no memory for a tensor, also for the first one', () => {
  const { makeOutput } = tf.backend() as BackendWasm;
  assert.throws(() => makeOutput.call(tf.backend(), [2 ** 30 + 1000], 'float32'), {
    code: 'TW_TRAIN_ENGINE_MEMORY',
  });
});
