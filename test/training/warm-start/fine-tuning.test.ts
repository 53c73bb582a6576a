/** The training of a model that starts from another: frozen layers, learning rate and checkpoints. */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { loadEngine } from '../../../src/engines/load.js';
import type { Tf } from '../../../src/engines/tfjs.js';
import { getModelSpec } from '../../../src/training/index.js';
import { headLayerNames } from '../../../src/training/learner.js';
import { buildModel } from '../../../src/training/models/network.js';
import { type ModelFiles, saveModel } from '../../../src/training/models/weights.js';
import { subsamplePatches } from '../../../src/training/patches.js';
import type { TrainOptions } from '../../../src/training/training-loop.js';
import { tempFolder } from '../../support/temp.js';
import { datasetOf, line, ndvi, parentIn, trainAndSave, valuesOf, weightsIn } from './trained-models.js';

describe('fine-tuning', () => {
  let tf: Tf;
  /** Files of a trained `ndvi` model. */
  let experienced: ModelFiles;
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
    experienced = (await trainAndSave(tf, ndvi, datasetOf(ndvi, 1))).files;
  });

  for (const name of ['ndvi', 'ndmi', 'cloud-removal'])
    it(`freezes the features of ${name} while its last layers are trained`, {
      timeout: 240_000,
    }, async (t) => {
      const spec = getModelSpec(name);
      const dataset = datasetOf(spec, 1);
      // Without selection patches the last epoch is kept.
      const few = { ...dataset, train: subsamplePatches(dataset.train, 8), selection: undefined };
      const original = buildModel(tf, spec, 5, line(spec));
      const parent = await parentIn(t, await saveModel(tf, original));
      const head = headLayerNames(spec, original);
      const before = valuesOf(original);
      const learned = [...before.keys()].filter((weight) => !weight.includes('moving'));
      const isHead = (weight: string) => head.includes(weight.split('/')[0]!);
      const features = learned.filter((weight) => !isHead(weight));
      // The weights of the head, except those that are fitted before the training.
      const held = learned.filter((weight) => isHead(weight) && !/^(line|change)\//.test(weight));
      assert.ok(features.length >= 3 && head.includes('line') && head.includes('change'), head.join());
      const start = { parents: [parent], probe: false };
      const changedBy = async (fineTuning: 'all' | 'head' | 'gradual', epochs: number) => {
        const { files } = await trainAndSave(tf, spec, few, { start, fineTuning, epochs });
        const after = weightsIn(files);
        const changed = (weight: string) =>
          before.get(weight)!.some((one, i) => one !== after.get(weight)![i]);
        return { features: features.some(changed), head: held.some(changed) };
      };
      assert.deepEqual(await changedBy('head', 2), { features: false, head: true });
      assert.deepEqual(await changedBy('gradual', 3), { features: true, head: true });
      assert.deepEqual(await changedBy('all', 2), { features: true, head: true });
      original.dispose();
    });

  it('warms the learning rate up at the start, and when further layers become trainable', async (t) => {
    const dataset = datasetOf(ndvi, 2);
    // One step an epoch; the first step of Adam moves a weight by the size of the step.
    const train = subsamplePatches(dataset.train, ndvi.batchSize);
    // Large targets have large gradients.
    const targets = train.targets.map((one) => 100 * one);
    const few = { ...dataset, train: { ...train, targets }, selection: undefined };
    const parent = await parentIn(t, experienced);
    const start = { parents: [parent], probe: false };
    const before = weightsIn(experienced);
    const moved = async (options: Partial<TrainOptions>) => {
      const after = weightsIn((await trainAndSave(tf, ndvi, few, { start, ...options })).files);
      const [name] = before.keys();
      const most = before
        .get(name!)!
        .reduce((most, one, i) => Math.max(most, Math.abs(after.get(name!)![i]! - one)), 0);
      return most / ndvi.learningRate;
    };
    const [all, gradual] = [await moved({ epochs: 1 }), await moved({ epochs: 2, fineTuning: 'gradual' })];
    assert.ok(Math.abs(all - 2 / 3) < 1e-2, `${all}`);
    // Half of the cosine schedule is over.
    assert.ok(Math.abs(gradual - 1 / 3) < 1e-2, `${gradual}`);
  });

  it('fails if the last step leaves NaN weights', async (t) => {
    const original = buildModel(tf, ndvi, 5, line(ndvi));
    const files = await saveModel(tf, original);
    original.dispose();
    const weights = new Float32Array(Uint8Array.from(files['weights.bin']).buffer).map((one) => 1e6 * one);
    const huge = { ...files, 'weights.bin': new Uint8Array(weights.buffer) };
    const start = { parents: [await parentIn(t, huge)], probe: false };
    const dataset = datasetOf(ndvi, 2);
    const few = { ...dataset, train: subsamplePatches(dataset.train, 60) };
    const training = trainAndSave(tf, ndvi, few, { start, epochs: 1 });
    await assert.rejects(training, { code: 'TW_TRAIN_DIVERGED' });
  });

  it('resumes from a checkpoint to the same weights, before and after the layers change', async (t) => {
    const folder = await tempFolder(t);
    const parent = await parentIn(t, experienced);
    const dataset = datasetOf(ndvi, 2);
    const train = (cutAt?: number) =>
      trainAndSave(tf, ndvi, dataset, {
        ...{ epochs: 6, fineTuning: 'gradual', start: { parents: [parent], probe: false } },
        checkpoint: { path: join(folder, 'place'), task: 'a', everySeconds: 0 },
        onEpoch: ({ epoch }) => {
          if (epoch === cutAt) throw new Error('cut off');
        },
      });
    const whole = await train();
    assert.equal(whole.start!.parent!.id, 'parent');
    // The last layers train alone for two epochs. An interrupted training resumes from the epoch before.
    for (const epoch of [2, 3, 4, 5]) {
      await assert.rejects(train(epoch), /cut off/);
      const { files, losses, start } = await train();
      assert.deepEqual(
        { files, losses, start },
        { files: whole.files, losses: whole.losses, start: whole.start },
      );
    }
  });

  it('resumes from a checkpoint with its parent, even if that has been deleted', async (t) => {
    const folder = await tempFolder(t);
    const [parent, other] = [await parentIn(t, experienced), await parentIn(t, experienced, 'other')];
    const train = (cutAt?: number) =>
      trainAndSave(tf, ndvi, datasetOf(ndvi, 2), {
        ...{ epochs: 3, start: { parents: [parent, other], probe: false } },
        checkpoint: { path: join(folder, 'place'), task: 'a', everySeconds: 0 },
        onEpoch: ({ epoch }) => {
          if (epoch === cutAt) throw new Error('cut off');
        },
      });
    const whole = await train();
    await assert.rejects(train(2), /cut off/);
    rmSync(parent.weights.path);
    const { files, start } = await train();
    assert.deepEqual({ files, start }, { files: whole.files, start: whole.start });
  });

  it('skips a parent whose files cannot be read', async (t) => {
    const [unread, good] = [await parentIn(t, experienced, 'unread'), await parentIn(t, experienced, 'good')];
    rmSync(unread.weights.path);
    mkdirSync(unread.weights.path);
    const from = { parents: [unread, good], probe: false };
    const { start } = await trainAndSave(tf, ndvi, datasetOf(ndvi, 2), { start: from });
    assert.equal(start!.parent!.id, 'good');
    assert.deepEqual(
      start!.refused!.map(({ id }) => id),
      ['unread'],
    );
    assert.match(start!.refused![0]!.reason, /it is a folder, not a file/);
  });
});
