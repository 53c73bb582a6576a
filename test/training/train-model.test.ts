import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { before, describe, it } from 'node:test';
import { copyTurned } from '../../src/training/augment.js';
import { loadEngine } from '../../src/training/engine/load-engine.js';
import type { Tf } from '../../src/training/engine/tf.js';
import { modelNamed } from '../../src/training/index.js';
import { cutPatches, PATCH_VALUES, type PatchDataset } from '../../src/training/patches.js';
import { predict, trainModel } from '../../src/training/train-model.js';
import { saveModel } from '../../src/training/weights.js';
import { field } from './fields.js';

const spec = modelNamed('ndvi');

function datasetOf(seed: number): PatchDataset {
  const outcome = cutPatches([field(140, 163, { seed })]);
  assert.ok('dataset' in outcome);
  return outcome.dataset;
}

describe('trainModel', () => {
  const dataset = datasetOf(1);
  let tf: Tf;
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
  });

  it('beats the training mean and ridge regression where NDVI is a curved function of colour', async () => {
    const { model, metrics, baseline, losses, predictions } = await trainModel(tf, spec, dataset, {
      seed: 1,
      epochs: 30,
    });
    model.dispose();
    assert.ok(metrics.validation.mse < baseline.linear.mse, 'worse than ridge regression');
    assert.ok(baseline.linear.mse < baseline.mean.mse, 'ridge regression is worse than the mean');
    assert.deepEqual(
      losses.map(({ epoch }) => epoch),
      Array.from({ length: 30 }, (_, i) => i + 1),
    );
    assert.ok(losses.at(-1)!.train < losses[0]!.train / 4);
    assert.equal(losses.at(-1)!.validation, metrics.validation.mse);
    assert.deepEqual(predictions.truth, dataset.validation.targets);
  });

  it('is the same to the last bit for the same seed, and another for another', async () => {
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

  it('starts at the training mean', async () => {
    const frozen = { ...spec, learningRate: 0 };
    const { model, metrics, baseline } = await trainModel(tf, frozen, dataset, { seed: 1, epochs: 1 });
    model.dispose();
    assert.ok(Math.abs(metrics.validation.mse - baseline.mean.mse) < 1e-8);
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
      assert.deepEqual(predict(tf, remote, spec, dataset.validation), predictions);
      assert.deepEqual(await saveModel(tf, remote), files);
      remote.dispose();
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});

describe('copyTurned', () => {
  it('gives the eight different symmetries of a patch', () => {
    const patch = Float32Array.from({ length: PATCH_VALUES }, (_, i) => i);
    const copies = Array.from({ length: 8 }, (_, symmetry) => {
      const copy = new Float32Array(PATCH_VALUES);
      copyTurned(patch, copy, symmetry);
      assert.deepEqual(copy.slice().sort(), patch);
      return copy.join();
    });
    assert.equal(copies[0], patch.join());
    assert.equal(new Set(copies).size, 8);
  });
});
