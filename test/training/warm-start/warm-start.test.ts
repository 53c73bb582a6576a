/** Training that starts from the model of another cell. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import { loadEngine } from '../../../src/engines/load.js';
import type { Tf } from '../../../src/engines/tfjs.js';
import { predictPatches } from '../../../src/training/batches.js';
import {
  linearPredictor,
  maskedPairs,
  meanSquaredError,
  regressionMetrics,
  sufficientStatistics,
} from '../../../src/training/evaluation.js';
import { getModelSpec } from '../../../src/training/index.js';
import { buildModel } from '../../../src/training/models/network.js';
import { type ModelFiles, saveModel } from '../../../src/training/models/weights.js';
import { type Patches, subsamplePatches } from '../../../src/training/patches.js';
import { ridge } from '../../../src/training/ridge-regression.js';
import { type SourceModelFiles, warmStart } from '../../../src/training/warm-start.js';
import {
  datasetOf,
  line,
  ndmi,
  ndvi,
  parentIn,
  trainAndSave,
  valuesOf,
  weightsIn,
} from './trained-models.js';

describe('warmStart', () => {
  let tf: Tf;
  /** Files of an `ndvi` model that has learned the meaning of colours. */
  let experienced: ModelFiles;
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
    experienced = (await trainAndSave(tf, ndvi, datasetOf(ndvi, 1, 300), { epochs: 20 })).files;
  });

  for (const name of ['ndvi', 'ndmi', 'cloud-removal'])
    it(`copies the weights of the parent into a ${name} model, adapted to the cell`, async (t) => {
      const spec = getModelSpec(name);
      const original = buildModel(tf, spec, 5, line(spec));
      const parent = await parentIn(t, await saveModel(tf, original));
      const fresh = buildModel(tf, spec, 6);
      const { train } = datasetOf(spec, 1);
      const before = meanSquaredError(tf, original, train);
      const { numTensors } = tf.memory();
      const start = await warmStart(tf, fresh, { train }, { parents: [parent], probe: false });
      assert.equal(tf.memory().numTensors, numTensors);
      assert.deepEqual(start, { parent: { id: 'parent', version: 'v1' } });
      const outputs = name === 'ndmi' ? /^(line|change)\// : /^line\//;
      const isAdapted = (weight: string) => outputs.test(weight) || weight.includes('moving');
      const [own, its] = [valuesOf(fresh), valuesOf(original)].map(
        (values) => new Map([...values].filter(([weight]) => !isAdapted(weight))),
      );
      assert.deepEqual(own, its);
      assert.ok(meanSquaredError(tf, fresh, train) < before / 2, 'the line does not fit the place');
      // The residuals of the patches that the line was adapted to have zero mean. If an attention map follows the line, the line is
      // not a regression of the residuals.
      const adapted = subsamplePatches(train, 2 ** 16 / spec.patchSize ** 2);
      const { truth, predicted } = maskedPairs(adapted, predictPatches(tf, fresh, adapted));
      const left = truth.reduce((sum, one, i) => sum + one - predicted[i]!, 0) / truth.length;
      if (name !== 'cloud-removal') assert.ok(Math.abs(left) < 1e-4, `${left}`);
      for (const model of [original, fresh]) model.dispose();
    });

  /** A model of `ndmi` that computes more than its line. */
  const withChange = (seed: number) => {
    const model = buildModel(tf, ndmi, seed, line(ndmi));
    setChange(model, seed);
    return model;
  };
  const setChange = (model: LayersModel, seed: number) => {
    const change = model.getLayer('change');
    const values = tf.randomNormal(change.weights[0]!.shape as number[], 0, 0.1, 'float32', seed);
    change.setWeights([values]);
    values.dispose();
  };

  for (const spec of [ndvi, ndmi])
    it(`moves the linear layer of a ${spec.name} parent as far as the cell outweighs it`, async (t) => {
      const original = withChange(5);
      const files = spec === ndvi ? experienced : await saveModel(tf, original);
      const parent = await parentIn(t, files);
      const { train } = datasetOf(spec, 2);
      // The land differs from the parent's land: the same colours have half of the index.
      const targets = train.targets.map((target) => target / 2);
      const model = buildModel(tf, spec, 6);
      await warmStart(tf, model, { train: { ...train, targets } }, { parents: [parent], probe: false });
      const before = weightsIn(files).get('line/kernel')!;
      const after = valuesOf(model).get('line/kernel')!;
      const adapted = subsamplePatches({ ...train, targets }, 2 ** 16 / spec.patchSize ** 2);
      const samples = samplesIn(adapted, predictPatches(tf, model, adapted));
      const meanOf = (values: number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;
      // The line minimises the sum of squared residuals plus the number of patches times the squared change of the weights, for features
      // of spread 1.
      const left = meanOf(samples.map(({ left }) => left));
      assert.ok(Math.abs(left) < 1e-6, `${left}`);
      for (const band of [0, 1, 2]) {
        const middle = meanOf(samples.map(({ bands }) => bands[band]!));
        const spread = Math.sqrt(meanOf(samples.map(({ bands }) => (bands[band]! - middle) ** 2)));
        const slope = meanOf(samples.map(({ bands, left }) => ((bands[band]! - middle) / spread) * left));
        const change = (after[band]! - before[band]!) * spread;
        const expected = (change * adapted.count) / samples.length;
        assert.ok(Math.abs(change) > 1e-5, 'nothing moved');
        assert.ok(
          Math.abs(slope - expected) < 1e-2 * Math.abs(expected) + 1e-8,
          `${slope} beside ${expected}`,
        );
      }
      for (const one of [original, model]) one.dispose();
    });

  it('takes the moving averages of batch normalisation from the cell', async (t) => {
    const original = withChange(5);
    const parent = await parentIn(t, await saveModel(tf, original));
    const model = buildModel(tf, ndmi, 6);
    const train = subsamplePatches(datasetOf(ndmi, 1).train, 8);
    await warmStart(tf, model, { train }, { parents: [parent], probe: false });
    const norms = model.layers.filter((layer) => layer.getClassName() === 'BatchNormalization');
    assert.ok(norms.length === 7 && norms.every((layer) => layer.getConfig().momentum === 0.9));
    // With its moving averages the model predicts the same for these patches as with the statistics of the patches.
    const input = tf.tensor4d(train.inputs, [train.count, train.size, train.size, 3]);
    const [byAverages, byTheirOwn] = [false, true].map((training) =>
      tf.tidy(() => (model.apply(input, { training }) as Tensor).dataSync<'float32'>()),
    );
    const apart = byAverages!.map((one, i) => Math.abs(one - byTheirOwn![i]!));
    const range = Math.max(...byTheirOwn!.slice(0, 4096)) - Math.min(...byTheirOwn!.slice(0, 4096));
    assert.ok(
      apart.every((one) => one < 0.02 * range),
      `${apart.reduce((a, b) => Math.max(a, b))} of ${range}`,
    );
    input.dispose();
    for (const one of [original, model]) one.dispose();
  });

  it('takes moving averages from the entire cell, although neighbouring patches are similar', async (t) => {
    const original = withChange(5);
    const parent = await parentIn(t, await saveModel(tf, original));
    const { train } = datasetOf(ndmi, 1, 420);
    // One half of the cell is five times as bright as the other half.
    const length = train.size ** 2 * 3;
    const inputs = train.inputs.map((one, i) => (i < (length * train.count) / 2 ? 0.3 : 1.5) * one);
    const model = buildModel(tf, ndmi, 6);
    await warmStart(tf, model, { train: { ...train, inputs } }, { parents: [parent], probe: false });
    const norm = model.layers.find((layer) => layer.getClassName() === 'BatchNormalization')!;
    const upTo = tf.model({ inputs: model.inputs, outputs: norm.input as SymbolicTensor });
    const [means, variances] = tf.tidy(() => {
      const input = tf.tensor4d(inputs, [train.count, train.size, train.size, 3]);
      const { mean, variance } = tf.moments(upTo.apply(input) as Tensor, [0, 1, 2]);
      return [mean, variance].map((one) => one.dataSync<'float32'>());
    });
    const [, , mean, variance] = norm.getWeights().map((one) => one.dataSync<'float32'>());
    assert.ok(train.count > 16);
    means!.forEach((one, i) => {
      assert.ok(Math.abs(mean![i]! - one) < 1e-3 * Math.sqrt(variances![i]!), `${mean![i]} beside ${one}`);
      const share = variance![i]! / variances![i]!;
      assert.ok(share > 0.85 && share < 1.1, `${share} of the variance`);
    });
    for (const one of [original, model]) one.dispose();
  });

  it('fits the last layer of a model for maps to the features of the cell', async (t) => {
    const original = withChange(5);
    const parent = await parentIn(t, await saveModel(tf, original));
    const { train } = datasetOf(ndmi, 1);
    const model = buildModel(tf, ndmi, 6);
    const start = { parents: [parent], probe: false };
    await warmStart(tf, model, { train }, start);
    // The targets become another function of the same features.
    setChange(model, 7);
    const targets = predictPatches(tf, model, train);
    await warmStart(tf, model, { train: { ...train, targets } }, start);
    const { truth, predicted } = maskedPairs({ ...train, targets }, predictPatches(tf, model, train));
    const { r2 } = regressionMetrics({ truth, predicted });
    assert.ok(r2 > 0.999, `${r2}`);
    for (const one of [original, model]) one.dispose();
  });

  it('starts with what the parent learned about similar land', async (t) => {
    const parent = await parentIn(t, experienced);
    const dataset = datasetOf(ndvi, 2);
    const fresh = await trainAndSave(tf, ndvi, dataset);
    const other = await trainAndSave(tf, ndvi, dataset, { start: { parents: [parent], probe: false } });
    const first = ({ losses }: typeof fresh) => losses[0]!.validation;
    assert.ok(first(other) < first(fresh) / 2, `${first(other)} beside ${first(fresh)}`);
    assert.deepEqual(other.start, { parent: { id: 'parent', version: 'v1' } });
  });

  it('refuses models with other layers, NaN weights or damaged files, and starts fresh', async (t) => {
    const { files } = await trainAndSave(tf, ndvi, datasetOf(ndvi, 1), { epochs: 1 });
    const others = buildModel(tf, getModelSpec('ndmi'), 1);
    const weights = new Float32Array(Uint8Array.from(files['weights.bin']).buffer);
    const all = (value: number) => new Uint8Array(weights.map(() => value).buffer);
    weights[7] = Number.NaN;
    const damaged = await parentIn(t, files, 'damaged');
    writeFileSync(damaged.weights.path, files['weights.bin'].subarray(4));
    const parents = [
      await parentIn(t, await saveModel(tf, others), 'others'),
      await parentIn(
        t,
        { ...files, 'weights.bin': Buffer.concat([files['weights.bin'], Buffer.alloc(8)]) },
        'longer',
      ),
      await parentIn(t, { ...files, 'weights.bin': new Uint8Array(weights.buffer) }, 'no number'),
      await parentIn(t, { ...files, 'model.json': Buffer.from('{"a":') }, 'no json'),
      await parentIn(t, { ...files, 'model.json': Buffer.from('{"weightsManifest": 3}') }, 'no manifest'),
      damaged,
      await parentIn(t, { ...files, 'weights.bin': all(1e38) }, 'absurd'),
      await parentIn(t, { ...files, 'weights.bin': all(1e17) }, 'large'),
    ];
    others.dispose();
    const fresh = await trainAndSave(tf, ndvi, datasetOf(ndvi, 2));
    for (const probe of [false, true]) {
      const { files, start } = await trainAndSave(tf, ndvi, datasetOf(ndvi, 2), {
        start: { parents, probe },
      });
      assert.deepEqual(files, fresh.files);
      assert.equal(start!.parent, undefined);
      assert.deepEqual(
        start!.refused!.map(({ id }) => id),
        ['others', 'longer', 'no number', 'no json', 'no manifest', 'damaged', 'absurd', 'large'],
      );
      const reasons = start!.refused!.map(({ reason }) => reason);
      assert.equal(reasons[0], 'its layers differ');
      assert.match(
        reasons[1]!,
        /^its files are not those of a model: weights.bin has \d+ bytes, and its list names \d+$/,
      );
      assert.equal(reasons[2], 'a weight is not finite');
      assert.match(reasons[5]!, /bytes/);
      for (const reason of reasons.slice(6))
        assert.equal(reason, 'its predictions for this place are not finite');
    }
    // The next suitable parent is used.
    const good = await parentIn(t, files, 'good');
    const start = { parents: [...parents, good], probe: false };
    assert.equal((await trainAndSave(tf, ndvi, datasetOf(ndvi, 2), { start })).start!.parent!.id, 'good');
  });

  it('compares its parents and a fresh model on training patches, and uses the best', async (t) => {
    const dataset = datasetOf(ndvi, 2, 300);
    const good = await parentIn(t, experienced, 'good');
    const wild = buildModel(tf, ndvi, 1);
    const change = wild.getLayer('change');
    change.setWeights([tf.randomNormal(change.weights[0]!.shape as number[], 0, 100, 'float32', 1)]);
    const bad = await parentIn(t, await saveModel(tf, wild), 'bad');
    wild.dispose();
    const probing = async (parents: SourceModelFiles[]) => {
      const model = buildModel(tf, ndvi, 4, { weights: [[0, 0, 0]], bias: [0.4] });
      const before = valuesOf(model);
      const start = await warmStart(tf, model, dataset, { parents, probe: true });
      const after = { start, mse: meanSquaredError(tf, model, dataset.validation), values: valuesOf(model) };
      model.dispose();
      return { ...after, before };
    };
    const { start, mse } = await probing([bad, good]);
    assert.equal(start.parent!.id, 'good');
    assert.deepEqual(
      start.probed!.map(({ id }) => id),
      [undefined, 'bad', 'good'],
    );
    const [fresh, ofBad, ofGood] = start.probed!.map((one) => one.mse);
    assert.ok(ofGood! < fresh! && fresh! < ofBad!);
    // The line is adapted to training patches and compared on selection patches.
    const [known, unknown] = [subsamplePatches(dataset.train, 32), subsamplePatches(dataset.selection!, 32)];
    const straight = linearPredictor(ridge(sufficientStatistics(known)))(unknown);
    const { mse: expected } = regressionMetrics({ truth: unknown.targets, predicted: straight });
    assert.ok(Math.abs(fresh! - expected) < 1e-4 * expected, `${fresh} beside ${expected}`);
    assert.ok(Math.abs(mse - ofGood!) < ofGood!);
    const alone = buildModel(tf, ndvi, 4);
    await warmStart(tf, alone, { train: known }, { parents: [good], probe: false });
    assert.equal(ofGood, meanSquaredError(tf, alone, unknown));
    alone.dispose();
    const none = await probing([bad]);
    assert.equal(none.start.parent, undefined);
    assert.deepEqual(none.values, none.before);
  });

  it('also compares large patches on several of them', async (t) => {
    const original = withChange(5);
    const parent = await parentIn(t, await saveModel(tf, original));
    const { train } = datasetOf(ndmi, 2);
    const selection = datasetOf(ndmi, 3).train;
    const model = buildModel(tf, ndmi, 4);
    const { probed } = await warmStart(tf, model, { train, selection }, { parents: [parent], probe: true });
    const [known, unknown] = [subsamplePatches(train, 8), subsamplePatches(selection, 8)];
    assert.deepEqual([known.count, unknown.count], [8, 8]);
    const straight = linearPredictor(ridge(sufficientStatistics(known)))(unknown);
    const { mse: expected } = regressionMetrics(maskedPairs(unknown, straight));
    assert.ok(
      Math.abs(probed![0]!.mse - expected) < 1e-4 * expected,
      `${probed![0]!.mse} beside ${expected}`,
    );
    for (const one of [original, model]) one.dispose();
  });
});

/** Returns the samples with a weight: the inputs of the line and the residual. */
function samplesIn(patches: Patches, predicted: Float32Array): { bands: number[]; left: number }[] {
  const pixels = patches.size ** 2;
  return [...patches.targets].flatMap((target, n) => {
    if (patches.targetMask?.[n] === 0) return [];
    const values = (band: number) => {
      if (patches.targetMask) return patches.inputs[3 * n + band]!;
      const own = patches.inputs.subarray(3 * pixels * n, 3 * pixels * (n + 1));
      return own.filter((_, at) => at % 3 === band).reduce((sum, one) => sum + one, 0) / pixels;
    };
    return [{ bands: [0, 1, 2].map(values), left: target - predicted[n]! }];
  });
}
