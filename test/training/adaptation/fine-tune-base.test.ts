/** Fine-tuning of a base model at one cell, with the WebAssembly engine. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { loadEngine } from '../../../src/engines/load.js';
import type { Tf } from '../../../src/engines/tfjs.js';
import { meanSquaredError } from '../../../src/training/evaluation.js';
import { fineTuneBase, withOtherCells } from '../../../src/training/fine-tuning.js';
import { getModelSpec } from '../../../src/training/index.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import { buildModel } from '../../../src/training/models/network.js';
import { readWeights, setWeights, type WeightValues } from '../../../src/training/models/weights.js';
import { makePatches, type TrainValidationPatches } from '../../../src/training/patches.js';
import { trainModel } from '../../../src/training/training-loop.js';
import { type Field, field } from '../synthetic-land.js';

const spec = getModelSpec('ndvi');

function datasetOf(...dates: Field[]): TrainValidationPatches {
  const outcome = makePatches(spec, labelImages(spec, dates));
  assert.ok('dataset' in outcome);
  return outcome.dataset;
}

/** The same land with more near infrared, so that the same colour has another NDVI. */
function brighter(land: Field, factor: number): Field {
  const nir = land.bands.nir.map((value) => factor * value);
  return { ...land, bands: { ...land.bands, nir, nir08: nir } };
}

describe('fine-tuning of a base model', () => {
  const land = field(140, 163, { seed: 1 });
  let tf: Tf;
  let base: WeightValues[];
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
    const { model } = await trainModel(tf, spec, datasetOf(land), { seed: 2, epochs: 10 });
    base = readWeights(model);
    model.dispose();
  });

  /** Validation error of weights. */
  const errorOf = (weights: WeightValues[], dataset: TrainValidationPatches) => {
    const model = buildModel(tf, spec, 1);
    setWeights(tf, model, weights);
    const error = meanSquaredError(tf, model, dataset.validation);
    model.dispose();
    return error;
  };

  it('fits a cell that differs from the base, with the same bits for the same seed', async () => {
    const other = datasetOf(brighter(land, 1.4));
    const losses: number[] = [];
    const onEpoch = (_: number, loss: number) => losses.push(loss);
    const tuned = await fineTuneBase(tf, spec, base, other.train, { epochs: 40, seed: 3, onEpoch });
    assert.ok(errorOf(tuned, other) < 0.5 * errorOf(base, other));
    assert.equal(losses.length, 40);
    assert.ok(losses[39]! < losses[0]!);
    assert.deepEqual(await fineTuneBase(tf, spec, base, other.train, { epochs: 40, seed: 3 }), tuned);
    const { numTensors } = tf.memory();
    await fineTuneBase(tf, spec, base, other.train, { epochs: 1, seed: 3 });
    assert.equal(tf.memory().numTensors, numTensors, 'no tensor is left');
  });

  it('learns ground that the base does not know in fewer epochs with full steps', async () => {
    const changed = datasetOf(brighter(land, 1.4));
    const options = { epochs: 8, seed: 3 };
    const small = await fineTuneBase(tf, spec, base, changed.train, options);
    const full = await fineTuneBase(tf, spec, base, changed.train, { ...options, fullSteps: true });
    assert.ok(errorOf(full, changed) < 0.7 * errorOf(small, changed));
  });

  it('changes the base less for the land of other cells if it also trains on their patches', async () => {
    const other = datasetOf(field(140, 163, { seed: 5 }));
    const own = datasetOf(brighter(land, 1.4));
    const samples = [
      { cell: 'own', dates: [], patches: own.train },
      { cell: 'other', dates: [], patches: other.train },
    ];
    const { patches, others } = withOtherCells('own', own.train, samples);
    assert.equal(others, Math.round(own.train.count / 2));
    assert.equal(patches.count, own.train.count + others);
    const options = { epochs: 20, seed: 3 };
    const alone = await fineTuneBase(tf, spec, base, own.train, options);
    const together = await fineTuneBase(tf, spec, base, patches, options);
    assert.ok(errorOf(together, other) < 0.7 * errorOf(alone, other));
    assert.ok(errorOf(together, own) < 0.7 * errorOf(base, own));
  });

  it('keeps the statistics of batch normalisation of the base', async () => {
    const unet = getModelSpec('ndmi');
    const model = buildModel(tf, unet, 1);
    const isMoving = model.weights.map(({ name }) => name.includes('moving'));
    const before = readWeights(model);
    model.dispose();
    const pixels = 2 * 16 * 16;
    const values = (length: number) => Float32Array.from({ length }, (_, i) => (i % 7) / 10);
    const after = await fineTuneBase(
      tf,
      unet,
      before,
      {
        ...{ count: 2, size: 16, inputBands: 3, targetBands: 1 },
        inputs: values(3 * pixels),
        targets: values(pixels),
        targetMask: new Float32Array(pixels).fill(1),
      },
      { epochs: 2, seed: 1 },
    );
    assert.ok(isMoving.includes(true));
    for (const [i, moving] of isMoving.entries()) if (moving) assert.deepEqual(after[i], before[i]);
    assert.notDeepEqual(after, before);
  });
});
