import assert from 'node:assert/strict';
import { readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { loadEngine } from '../../../src/engines/load.js';
import type { Tf } from '../../../src/engines/tfjs.js';
import type { DatePair } from '../../../src/training/acquisitions.js';
import { applyD4, predictPatches } from '../../../src/training/batches.js';
import { diverged } from '../../../src/training/errors.js';
import type { EpochLosses } from '../../../src/training/evaluation.js';
import { getModelSpec } from '../../../src/training/index.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import { saveModel } from '../../../src/training/models/weights.js';
import { makePatches, type TrainValidationPatches } from '../../../src/training/patches.js';
import { trainModel } from '../../../src/training/training-loop.js';
import { tempFolder } from '../../support/temp.js';
import { clouded, type Field, field } from '../synthetic-land.js';

const spec = getModelSpec('ndvi');

function datasetOf(seed: number): TrainValidationPatches {
  const outcome = makePatches(spec, labelImages(spec, [field(140, 163, { seed })]));
  assert.ok('dataset' in outcome);
  return outcome.dataset;
}

describe('trainModel', () => {
  const dataset = datasetOf(1);
  let tf: Tf;
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
  });

  it('beats the training mean and ridge regression if NDVI is a nonlinear function of colour', async () => {
    const trained = await trainModel(tf, spec, dataset, {
      seed: 2,
      epochs: 30,
    });
    const { model, metrics, baseline, losses, bestEpoch, predictions, selection } = trained;
    model.dispose();
    assert.ok(metrics.validation.mse < baseline.linear.mse, 'worse than ridge regression');
    assert.ok(baseline.linear.mse < baseline.mean.mse, 'ridge regression is worse than the mean');
    assert.deepEqual(
      losses.map(({ epoch }) => epoch),
      Array.from({ length: 30 }, (_, i) => i + 1),
    );
    assert.ok(losses.at(-1)!.train < losses[0]!.train / 4);
    const lowest = Math.min(...losses.map(({ selection }) => selection!));
    assert.equal(losses[bestEpoch - 1]!.selection, lowest);
    assert.equal(losses[bestEpoch - 1]!.validation, metrics.validation.mse);
    // Versions are compared by the loss that chose the epoch.
    assert.equal(selection!.mse, lowest);
    const truth = dataset.selection!.targets;
    const known = dataset.train.targets.reduce((sum, value) => sum + value, 0) / dataset.train.targets.length;
    const ofMean = truth.reduce((sum, value) => sum + (value - known) ** 2, 0) / truth.length;
    assert.ok(Math.abs(selection!.mean / ofMean - 1) < 1e-5, `${selection!.mean} is not ${ofMean}`);
    assert.equal(selection!.spread.count, truth.length);
    assert.deepEqual(predictions!.truth, dataset.validation.targets);
  });

  it('gives the same bits for the same seed, and other weights for another', async () => {
    const weights = async (seed: number) => {
      const { model, losses } = await trainModel(tf, spec, dataset, { seed, epochs: 2 });
      const files = await saveModel(tf, model);
      model.dispose();
      return { files, losses };
    };
    const first = await weights(5);
    assert.deepEqual(await weights(5), first);
    assert.notDeepEqual((await weights(6)).files['weights.bin'], first.files['weights.bin']);
  });

  it('starts as ridge regression', async () => {
    const frozen = { ...spec, learningRate: 0 };
    const { model, metrics, baseline } = await trainModel(tf, frozen, dataset, { seed: 1, epochs: 1 });
    model.dispose();
    assert.ok(Math.abs(metrics.validation.mse - baseline.linear.mse) < 1e-8);
  });

  it('resumes from a checkpoint to the same weights, but not from one of another task', async (t) => {
    const folder = await tempFolder(t);
    const path = join(folder, 'place');
    const train = async (task: string, onEpoch?: (loss: EpochLosses) => void) => {
      const checkpoint = { path, task, everySeconds: 0 };
      const { model, losses } = await trainModel(tf, spec, dataset, {
        seed: 4,
        epochs: 5,
        checkpoint,
        onEpoch,
      });
      const files = await saveModel(tf, model);
      model.dispose();
      return { files, losses };
    };
    const whole = await train('a');
    assert.deepEqual(readdirSync(folder), []);
    const cutOff = (epoch: number) => (loss: EpochLosses) => {
      if (loss.epoch === epoch) throw new Error('cut off');
    };
    const epochs: number[] = [];
    await assert.rejects(train('a', cutOff(3)), /cut off/);
    assert.deepEqual(await train('a', ({ epoch }) => epochs.push(epoch)), whole);
    assert.deepEqual(epochs, [4, 5]);
    await assert.rejects(train('b', cutOff(2)), /cut off/);
    assert.deepEqual(await train('a', ({ epoch }) => epochs.push(epoch)), whole);
    assert.equal(epochs.length, 7);
    // An incomplete file is ignored.
    await assert.rejects(train('a', cutOff(3)), /cut off/);
    truncateSync(path, statSync(path).size - 4);
    assert.deepEqual(await train('a', ({ epoch }) => epochs.push(epoch)), whole);
    assert.equal(epochs.length, 12);
    // After a power cut the file may exist without its bytes.
    writeFileSync(path, '');
    assert.deepEqual(await train('a', ({ epoch }) => epochs.push(epoch)), whole);
    assert.equal(epochs.length, 17);
  });

  it('fails if the loss becomes NaN', async () => {
    const before = tf.memory().numTensors;
    const wild = { ...spec, learningRate: 1e30 };
    await assert.rejects(trainModel(tf, wild, dataset, { seed: 1 }), diverged.is);
    assert.equal(tf.memory().numTensors, before);
  });

  it('leaves no tensors behind', async () => {
    const before = tf.memory().numTensors;
    const { model } = await trainModel(tf, spec, dataset, { seed: 1, epochs: 1 });
    model.dispose();
    assert.equal(tf.memory().numTensors, before);
  });

  it('predicts the same after saving and loading by tf.loadLayersModel over HTTP', async () => {
    const { model, predictions } = await trainModel(tf, spec, dataset, { seed: 3, epochs: 1 });
    const files = await saveModel(tf, model);
    model.dispose();
    const server = createServer((request, response) => {
      const file = files[request.url!.slice(1)];
      response.writeHead(file ? 200 : 404).end(file);
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const remote = await tf.loadLayersModel(`http://127.0.0.1:${port}/model.json`);
      assert.deepEqual(predictPatches(tf, remote, dataset.validation), predictions!.predicted);
      assert.deepEqual(await saveModel(tf, remote), files);
      remote.dispose();
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});

describe('models of images', () => {
  let tf: Tf;
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
  });

  it('makes a map of NDMI, better than the mean, that opens at any size', async () => {
    const before = tf.memory().numTensors;
    const { model, ...result } = await trainedOn('ndmi', [field(320, 256)], []);
    const { metrics, baseline } = result;
    assert.ok(metrics.validation.mse < baseline.mean.mse / 2, JSON.stringify(result));
    assert.equal(metrics.validation.msSsim!.scales, 3);
    assert.ok(metrics.validation.msSsim!.value > baseline.mean.msSsim!.value);
    assert.equal(result.predictions, undefined);
    const opened = await reopened(tf, model);
    const map = tf.tidy(() => (opened.predict(tf.zeros([1, 128, 96, 3])) as Tensor).shape);
    assert.deepEqual(map, [1, 128, 96, 1]);
    opened.dispose();
    assert.equal(tf.memory().numTensors, before);
  });

  it('is nearer to the clear date than the cloudy one under cloud, and keeps the rest', async () => {
    const before = tf.memory().numTensors;
    const clear = field(320, 256);
    const { model, metrics, baseline, losses } = await trainedOn(
      'cloud-removal',
      [clouded(clear), clear],
      [{ cloudy: 0, clear: 1 }],
    );
    assert.ok(metrics.validation.psnr! > baseline.unchanged!.psnr!, 'no nearer than the cloudy date');
    assert.ok(losses.at(-1)!.validation < baseline.unchanged!.mse);
    const opened = await reopened(tf, model);
    const shapes = tf.tidy(() =>
      (opened.predict(tf.zeros([1, 80, 64, 13])) as Tensor[]).map(({ shape }) => shape),
    );
    assert.deepEqual(shapes, [
      [1, 80, 64, 3],
      [1, 80, 64, 1],
    ]);
    // Without cloud in the last plane, the model returns the date unchanged.
    const [same, date] = tf.tidy(() => {
      const planes = tf.randomUniform([1, 16, 16, 12], 0, 1, 'float32', 3);
      const [made] = opened.predict(tf.concat([planes, tf.zeros([1, 16, 16, 1])], 3)) as [Tensor];
      return [made.dataSync(), tf.slice(planes, [0, 0, 0, 0], [1, 16, 16, 3]).dataSync()];
    });
    assert.deepEqual(same, date);
    opened.dispose();
    assert.equal(tf.memory().numTensors, before);
  });

  async function trainedOn(name: string, dates: Field[], pairs: DatePair[]) {
    // Few patches, since these models are slow without oneDNN.
    const model = { ...getModelSpec(name), minPatches: 8, minValidationPatches: 2, maxPatches: 8 };
    const outcome = makePatches(model, labelImages(model, dates, pairs));
    assert.ok('dataset' in outcome, JSON.stringify(outcome));
    return trainModel(tf, model, outcome.dataset, { seed: 1, epochs: name === 'ndmi' ? 12 : 2 });
  }
});

/** Saves, disposes and reloads the model. */
async function reopened(tf: Tf, model: LayersModel): Promise<LayersModel> {
  const files = await saveModel(tf, model);
  model.dispose();
  const { modelTopology, weightsManifest } = JSON.parse(Buffer.from(files['model.json']).toString());
  const { buffer, byteOffset, byteLength } = files['weights.bin'];
  const weightData = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
  const weightSpecs = weightsManifest[0].weights;
  return tf.loadLayersModel(tf.io.fromMemory({ modelTopology, weightSpecs, weightData }));
}

describe('applyD4', () => {
  it('applies the eight different symmetries of a patch', () => {
    const patch = Float32Array.from({ length: 16 * 16 * 3 }, (_, i) => i);
    const copies = Array.from({ length: 8 }, (_, symmetry) => {
      const copy = new Float32Array(16 * 16 * 3);
      applyD4(patch, copy, 16, 3, symmetry);
      assert.deepEqual(copy.slice().sort(), patch);
      return copy.join();
    });
    assert.equal(copies[0], patch.join());
    assert.equal(new Set(copies).size, 8);
  });
});
