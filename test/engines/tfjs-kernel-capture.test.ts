import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Tensor, Tensor2D, Variable } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { captureKernels } from '../../src/engines/kernel-capture.js';
import { loadEngine } from '../../src/engines/load.js';
import type { Tf } from '../../src/engines/tfjs.js';
import type { Batch } from '../../src/training/batches.js';
import { augmentedBatch } from '../../src/training/batches.js';
import { Adam, asVariables, BatchGradients, lossAndGradients } from '../../src/training/learner.js';
import { getModelSpec } from '../../src/training/models/builtin.js';
import { buildModel } from '../../src/training/models/network.js';
import { randomStream } from '../../src/utils/random.js';

const STRAIGHT = { weights: [[0.1, 0.2, 0.3]], bias: [0.1] };

describe('captureKernels', () => {
  let tf: Tf;
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
  });

  const matrix = (values: number[]) => tf.tensor2d(values, [2, 2]);
  const valuesOf = (tensors: Tensor[]) => tensors.map((tensor) => [...tensor.dataSync()]);
  const inUse = () => [
    tf.memory().numTensors,
    (tf.backend() as unknown as { numDataIds(): number }).numDataIds(),
  ];

  it('replays with other values to the same results, and keeps no memory', () => {
    const compute = (a: Tensor2D, b: Tensor2D) =>
      tf.tidy(() => {
        const constant = tf.tensor2d([1, 2, 3, 4], [2, 2]);
        const product = tf.matMul(a, tf.add(b, constant));
        const row = tf.reshape(product, [4]);
        // Results that share data with each other, with a given tensor and with a constant.
        return [
          row,
          product,
          tf.split(tf.concat([product, a], 1), 2, 1)[0],
          tf.clone(a),
          tf.clone(constant),
        ] as Tensor[];
      });
    const first = [matrix([1, 2, 3, 4]), matrix([5, 6, 7, 8])] as const;
    const { outputs, replay } = captureKernels(tf, [...first], () => compute(...first));
    assert.deepEqual(valuesOf(outputs), valuesOf(compute(...first)));
    tf.dispose(outputs);
    assert.ok(replay);
    const other = [matrix([-1, 0, 2, 5]), matrix([0.5, 3, -7, 1])] as const;
    const expected = tf.tidy(() => valuesOf(compute(...other)));
    const before = inUse();
    for (let time = 0; time < 3; time++) {
      const again: Tensor[] = replay.replay([...other]);
      assert.deepEqual(
        again.map(({ shape }) => shape),
        [[4], [2, 2], [2, 2], [2, 2], [2, 2]],
      );
      assert.deepEqual(valuesOf(again), expected);
      tf.dispose(again);
    }
    assert.deepEqual(inUse(), before);
    replay.dispose();
  });

  it('returns no replay if values are read, and then leaves no memory', () => {
    const start = inUse();
    const refused = (given: Tensor[], compute: () => Tensor[]) => {
      const { outputs, replay } = captureKernels(tf, given, compute);
      assert.equal(replay, null);
      tf.dispose([...given, ...outputs]);
    };
    const a = matrix([1, 2, 3, 4]);
    refused([a], () => tf.tidy(() => [tf.mul(a, tf.max(a).dataSync()[0]!)]));
    const moving = tf.variable(matrix([1, 1, 1, 1]), false);
    refused([moving], () =>
      tf.tidy(() => {
        const next = tf.mul(moving, 0.9) as Tensor2D;
        moving.assign(next);
        return [tf.square(moving), next];
      }),
    );
    const b = matrix([1, 2, 3, 4]);
    const same = tf.clone(b);
    refused([b, same], () => tf.tidy(() => [tf.add(b, same)]));
    const c = matrix([1, 2, 3, 4]);
    assert.throws(() =>
      captureKernels(tf, [c], () => tf.tidy(() => [tf.add(tf.square(c), tf.tensor1d([1, 2, 3]))])),
    );
    tf.dispose(c);
    // The first value of `moving` belongs to the tensor that it was made of.
    assert.deepEqual(
      inUse().map((count, i) => count - start[i]!),
      [1, 1],
    );
  });

  it('assigns variables', () => {
    const start = inUse();
    const moving = tf.variable(matrix([1, 1, 1, 1]), false);
    const compute = (a: Tensor2D) => () =>
      tf.tidy((): Tensor[] => {
        moving.assign(tf.add(tf.mul(moving, 0.5), a) as Tensor2D);
        return [tf.square(moving)];
      });
    const first = matrix([1, 2, 3, 4]);
    const { outputs, replay } = captureKernels(tf, [first, moving], compute(first));
    assert.deepEqual([...moving.dataSync()], [1.5, 2.5, 3.5, 4.5]);
    const used = inUse();
    for (let round = 0; round < 3; round++) {
      const expected = [...moving.dataSync()].map((value) => 0.5 * value + 1);
      const ones = matrix([1, 1, 1, 1]);
      const [square] = replay!.replay([ones, moving]) as [Tensor];
      assert.deepEqual([...moving.dataSync()], expected);
      assert.deepEqual(
        [...square.dataSync()],
        expected.map((value) => value ** 2),
      );
      tf.dispose([ones, square]);
    }
    assert.deepEqual(inUse(), used);
    replay!.dispose();
    tf.dispose([first, ...outputs]);
    moving.dispose();
    assert.deepEqual(
      inUse().map((count, i) => count - start[i]!),
      [1, 1],
    );
  });

  it('returns the previous value of a variable that it assigns', () => {
    const moving = tf.tidy(() => tf.variable(tf.tensor1d([1, 2])));
    const compute = () =>
      tf.tidy(() => {
        const former = tf.mul(moving, 1);
        const before = tf.clone(moving);
        moving.assign(tf.add(former, 1));
        return [before];
      });
    const { outputs, replay } = captureKernels(tf, [moving], compute);
    const again = replay!.replay([moving]);
    assert.deepEqual(valuesOf([...outputs, ...again, moving]), [
      [1, 2],
      [2, 3],
      [3, 4],
    ]);
    replay!.dispose();
    tf.dispose([...outputs, ...again, moving]);
  });

  it('leaves no memory if a kernel throws', () => {
    const a = matrix([1, 2, 3, 4]);
    const kernel = tf.getKernel('Exp', 'wasm')!;
    const { kernelFunc } = kernel;
    let fails = false;
    kernel.kernelFunc = (given) => {
      if (fails) throw new Error('no memory');
      return kernelFunc(given);
    };
    const { outputs, replay } = captureKernels(tf, [a], () => tf.tidy(() => [tf.exp(tf.square(a))]));
    const before = inUse();
    fails = true;
    assert.throws(() => replay!.replay([a]), /no memory/);
    assert.deepEqual(inUse(), before);
    kernel.kernelFunc = kernelFunc;
    replay!.dispose();
    tf.dispose([a, ...outputs]);
  });

  const spec = getModelSpec('ndvi');
  const nets: Record<string, () => LayersModel> = {
    'a net': () => buildModel(tf, spec, 3, STRAIGHT),
    'batch normalisation': () =>
      tf.sequential({
        layers: [
          tf.layers.conv2d({
            ...{ inputShape: [spec.patchSize, spec.patchSize, 3], filters: 8, kernelSize: 3 },
            kernelInitializer: tf.initializers.glorotUniform({ seed: 3 }),
          }),
          tf.layers.batchNormalization(),
          tf.layers.flatten(),
          tf.layers.dense({ units: 1, kernelInitializer: tf.initializers.glorotUniform({ seed: 4 }) }),
        ],
      }),
  };
  for (const [name, build] of Object.entries(nets))
    it(`trains ${name} to the same bits, and calls the loss once for each batch size`, async () => {
      const random = randomStream(5);
      const count = 40;
      const patches = {
        ...{ count, size: spec.patchSize, inputBands: 3, targetBands: 1 },
        inputs: Float32Array.from({ length: count * spec.patchSize ** 2 * 3 }, () => 0.3 * random.next()),
        targets: Float32Array.from({ length: count }, random.next),
      };
      const train = async (isReplayed: boolean) => {
        const model = build();
        const adam = new Adam(tf, asVariables(model.trainableWeights));
        let asked = 0;
        const loss = ({ inputs, targets }: Batch) => {
          asked++;
          return tf.mean(tf.square(tf.sub(model.apply(inputs, { training: true }) as Tensor, targets)));
        };
        const replayed = new BatchGradients(tf, adam.variables, asVariables(model.weights), loss);
        const losses: number[] = [];
        const turns = randomStream(9);
        const used: number[][] = [];
        for (let step = 1; step <= 8; step++) {
          const chosen = Uint32Array.from({ length: step % 2 ? 32 : 8 }, (_, i) => i);
          const batch = augmentedBatch(tf, patches, chosen, turns.next);
          const gradients = isReplayed
            ? replayed.of(batch)
            : lossAndGradients(tf, adam.variables, () => loss(batch));
          losses.push(await adam.minimiseStep(gradients, { learningRate: 1e-2, step }));
          tf.dispose([batch.inputs, batch.targets]);
          used.push(inUse());
        }
        assert.deepEqual(used.at(-1), used[3]);
        const weights = asVariables(model.weights).map((variable: Variable) => [...variable.dataSync()]);
        replayed.dispose();
        adam.dispose();
        model.dispose();
        return { asked, losses, weights };
      };
      const start = inUse();
      const [plain, replayed] = [await train(false), await train(true)];
      assert.deepEqual([replayed.losses, replayed.weights], [plain.losses, plain.weights]);
      assert.deepEqual([plain.asked, replayed.asked], [8, 2]);
      assert.deepEqual(inUse(), start);
    });
});
