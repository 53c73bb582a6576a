/** Several members in one process, compared with one that trains on all of their batches itself. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { loadEngine } from '../../../src/engines/load.js';
import type { Tf } from '../../../src/engines/tfjs.js';
import { Mask } from '../../../src/raster/index.js';
import { commonCell } from '../../../src/storage/index.js';
import type { DatePair } from '../../../src/training/acquisitions.js';
import type { Batch } from '../../../src/training/batches.js';
import { augmentedBatch, predictPatches } from '../../../src/training/batches.js';
import {
  allReduceRunningStatistics,
  type CellPatches,
  trainDataParallel,
} from '../../../src/training/distributed/data-parallel.js';
import { distributedReport, pooledCellScores } from '../../../src/training/distributed/messages.js';
import { type ProcessGroup, SINGLE_PROCESS_GROUP } from '../../../src/training/distributed/ring.js';
import { diverged } from '../../../src/training/errors.js';
import type { Metrics } from '../../../src/training/evaluation.js';
import {
  evaluateBaselines,
  initialFitStatistics,
  regressionMetrics,
  sufficientStatistics,
} from '../../../src/training/evaluation.js';
import { displayRange, meanScores } from '../../../src/training/image-metrics.js';
import { getModelSpec } from '../../../src/training/index.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import type { ModelSpec } from '../../../src/training/models/spec.js';
import { rgbNormalisation } from '../../../src/training/models/spec.js';
import { concatPatches, makePatches, type TrainValidationPatches } from '../../../src/training/patches.js';
import { ridge } from '../../../src/training/ridge-regression.js';
import { scoreTile } from '../../../src/training/tile-scores.js';
import { createLearner } from '../../../src/training/training-loop.js';
import { randomStream, shuffledOrder, streamSeed } from '../../../src/utils/random.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate } from '../acquisition-files.js';
import { clouded, type Field, field } from '../synthetic-land.js';
import { ringOf } from './process-groups.js';

function datasetOf(spec: ModelSpec, dates: Field[], pairs: DatePair[] = []): TrainValidationPatches {
  const outcome = makePatches(
    { ...spec, minPatches: Math.min(8, spec.minPatches) },
    labelImages(spec, dates, pairs),
  );
  assert.ok('dataset' in outcome, JSON.stringify(outcome));
  return outcome.dataset;
}

const cell = (geocode: string, dataset: TrainValidationPatches): CellPatches => ({
  geocode,
  tiles: [],
  dataset,
});

const seed = 7;

async function valuesOf(model: LayersModel): Promise<Float32Array[]> {
  return Promise.all(model.getWeights().map((weight) => weight.data<'float32'>()));
}

/** Trains all members at once and returns their weights. */
async function trainAll(tf: Tf, spec: ModelSpec, cells: CellPatches[][], epochs: number) {
  const { rings, links } = await ringOf(cells.length);
  const all = await Promise.all(
    rings.map(async (ring, i) => {
      const one = await trainDataParallel(tf, spec, cells[i]!, 100, ring, { seed, epochs });
      await links[i]?.shutdown();
      return one;
    }),
  );
  const weights = await Promise.all(all.map(({ model }) => valuesOf(model)));
  return { all, weights };
}

it('the cell of a model is the smallest one that contains all of its cells', () => {
  assert.equal(commonCell(['u26xy']), 'u26xy');
  assert.equal(commonCell(['u26xy', 'u27rb', 'u2']), 'u2');
  assert.equal(commonCell(['u26xy', '9q8yy']), 'world');
});

describe('trainDataParallel', () => {
  const spec = getModelSpec('ndvi');
  let tf: Tf;
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
  });
  // The last member has few patches, in many steps none.
  const small = { ...spec, minPatches: 6, minValidationPatches: 2 };
  const datasets = [
    [field(140, 163, { seed: 1 }), field(150, 150, { seed: 2 })],
    [field(128, 128, { seed: 3 })],
    [field(64, 64, { seed: 4 })],
  ].map((fields) => fields.map((one) => datasetOf(small, [one])));
  const cells = datasets.map((own, m) => own.map((dataset, n) => cell(`u${m}${n}`, dataset)));
  const sets = datasets.map((own) => concatPatches(own.map(({ train }) => train)));

  it('matches one process that trains on the batches of all ranks', async () => {
    const epochs = 3;
    const batched = { ...spec, batchSize: 8 };
    const { all, weights } = await trainAll(tf, batched, cells, epochs);
    for (const other of weights) assert.deepEqual(other, weights[0]);
    for (const { trained } of all)
      assert.deepEqual(trained, { ...all[0]!.trained, seconds: trained.seconds });

    const stepsAnEpoch = Math.ceil(sets[0]!.count / 8);
    assert.ok(sets[2]!.count < stepsAnEpoch);
    const steps = epochs * stepsAnEpoch;
    const union = concatPatches(sets);
    const learner = createLearner(tf, batched, seed, { linear: ridge(sufficientStatistics(union)) });
    const streams = sets.map((_, m) => randomStream(streamSeed(seed, m)).next);
    const losses: number[] = [];
    let step = 0;
    for (let epoch = 0; epoch < epochs; epoch++) {
      const orders = sets.map((set, m) => shuffledOrder(set.count, streams[m]!));
      let sum = 0;
      for (let part = 0; part < stepsAnEpoch; part++) {
        const batches = sets.flatMap((set, m) => {
          const edge = (at: number) => Math.floor((at * set.count) / stepsAnEpoch);
          const chosen = orders[m]!.subarray(edge(part), edge(part + 1));
          const batch = augmentedBatch(
            tf,
            set,
            chosen.length ? chosen : orders[m]!.subarray(0, 1),
            streams[m]!,
          );
          return chosen.length ? [batch] : [];
        });
        const joined: Batch = {
          size: batches.reduce((all, { size }) => all + size, 0),
          inputs: tf.concat(batches.map(({ inputs }) => inputs)),
          targets: tf.concat(batches.map(({ targets }) => targets as Tensor)),
        };
        const learningRate = 0.5 * spec.learningRate * (1 + Math.cos((Math.PI * step++) / steps));
        sum += joined.size * (await learner.step(joined, { learningRate, step }));
      }
      losses.push(sum / union.count);
    }
    const { losses: shared, parameters, members } = all[0]!.trained;
    assert.equal(all[0]!.trained.steps, steps);
    // Only the rounding of sums differs, and the difference grows from step to step.
    losses.forEach((loss, epoch) => {
      const near = (epoch === 0 ? 1e-5 : 1e-3) * loss;
      assert.ok(Math.abs(loss - shared[epoch]!.train) < near, `${shared[epoch]!.train} is not ${loss}`);
    });
    const validation = concatPatches(datasets.flat().map((one) => one.validation));
    const expected = regressionMetrics({
      truth: validation.targets,
      predicted: predictPatches(tf, learner.model, validation),
    });
    assert.ok(Math.abs(expected.mse - shared.at(-1)!.validation) < 1e-3 * expected.mse);
    const lowest = Math.min(...shared.map(({ selection }) => selection!));
    assert.equal(shared[all[0]!.trained.bestEpoch - 1]!.selection, lowest);
    const { selection } = pooledCellScores(all[0]!.trained);
    assert.ok(Math.abs(selection!.mse / lowest - 1) < 1e-6, `${selection!.mse} is not ${lowest}`);
    const chosenOn = concatPatches(datasets.flat().flatMap((one) => one.selection ?? []));
    assert.equal(selection!.spread.count, chosenOn.targets.length);
    const trainable = learner.model.trainableWeights.reduce(
      (sum, { shape }) => sum + shape.reduce<number>((all, side) => all * side!, 1),
      0,
    );
    assert.equal(parameters, trainable);
    assert.deepEqual(
      members.map(({ patches }) => patches),
      sets.map(({ count }) => count),
    );
    learner.model.dispose();
    for (const { model } of all) model.dispose();
  });

  it('weights the ranks by the pixels that count', async () => {
    const plain: ModelSpec = {
      ...getModelSpec('ndmi'),
      layers: [rgbNormalisation, { type: 'conv', filters: 8 }],
      ...{ patchSize: 32, batchSize: 4, maxPatches: 4, minPatches: 4, minValidationPatches: 1 },
    };
    const whole = field(160, 128, { seed: 1 });
    const bright = field(160, 128, { seed: 2 });
    for (const values of Object.values(bright.bands)) for (const at of values.keys()) values[at]! += 0.15;
    // A quarter of each patch is under cloud.
    bright.mask = bright.mask.map((code, at) => (at % 32 < 8 ? Mask.cloud : code));
    const sets = [whole, bright].map((one) => datasetOf(plain, [one]));
    const own = sets.map((dataset, i) => [cell(`p${i}`, dataset)]);
    const { all, weights } = await trainAll(tf, plain, own, 1);
    const union = concatPatches(sets.map(({ train }) => train));
    const learner = createLearner(tf, plain, seed, { linear: ridge(initialFitStatistics(union)) });
    const streams = sets.map((_, m) => randomStream(streamSeed(seed, m)).next);
    const batches = sets.map(({ train }, m) =>
      augmentedBatch(tf, train, shuffledOrder(train.count, streams[m]!), streams[m]!),
    );
    const joined: Batch = {
      size: union.count,
      inputs: tf.concat(batches.map(({ inputs }) => inputs)),
      targets: tf.concat(batches.map(({ targets }) => targets as Tensor)),
      counts: tf.concat(batches.map(({ counts }) => counts!)),
    };
    const loss = await learner.step(joined, { learningRate: plain.learningRate, step: 1 });
    assert.ok(Math.abs(loss - all[0]!.trained.losses[0]!.train) < 1e-5 * loss, `${loss}`);
    (await valuesOf(learner.model)).forEach((values, i) => {
      values.forEach((value, at) => {
        assert.ok(Math.abs(value - weights[0]![i]![at]!) < 1e-4, `${value} and ${weights[0]![i]![at]}`);
      });
    });
    for (const { model } of all) model.dispose();
  });

  it('pools the moments of batch normalisation to those of all values', async () => {
    const { rings, links } = await ringOf(2);
    const moments = [
      { mean: [0, 2], variance: [0.01, 1] },
      { mean: [1, 2], variance: [0.03, 2] },
    ].map(({ mean, variance }) =>
      tf.tidy(() => ({ mean: tf.variable(tf.tensor1d(mean)), variance: tf.variable(tf.tensor1d(variance)) })),
    );
    await Promise.all(
      rings.map((ring, i) => allReduceRunningStatistics(tf, ring, [moments[i]!], i === 0 ? 1 : 3)),
    );
    await Promise.all(links.map((link) => link?.shutdown()));
    for (const { mean, variance } of moments) {
      assert.deepEqual([...mean.dataSync()], [0.75, 2]);
      // 0.25 * 0.01 + 0.75 * 0.03 + 0.25 * 0.75, and 0.25 + 1.5.
      const [first, second] = variance.dataSync();
      assert.ok(Math.abs(first! - 0.2125) < 1e-6 && Math.abs(second! - 1.75) < 1e-5, `${first} ${second}`);
    }
  });

  it('pools the scores of all cells, and reports the bytes', async () => {
    const { all } = await trainAll(tf, spec, cells, 1);
    const { trained, model } = all[0]!;
    const pooled = pooledCellScores(trained);
    for (const side of ['train', 'validation'] as const) {
      const whole = concatPatches(datasets.flat().map((one) => one[side]));
      const expected = regressionMetrics({
        truth: whole.targets,
        predicted: predictPatches(tf, model, whole),
      });
      assert.ok(Math.abs(pooled.metrics[side].mse - expected.mse) < 1e-9);
      assert.ok(Math.abs(pooled.metrics[side].r2 - expected.r2) < 1e-6);
    }
    const report = distributedReport(trained, ['a', 'b', 'c'], 3);
    assert.equal(report.leastBytes, (4 / 3) * 4 * report.parameters * report.steps);
    assert.deepEqual(
      report.places.map(({ geocode }) => geocode),
      ['u00', 'u01', 'u10', 'u20'],
    );
    for (const { ratio, node } of report.members) assert.ok(ratio! > 1 && ratio! < 1.05, `${node}: ${ratio}`);
    for (const { model } of all) model.dispose();
  });

  it('scores images with the range of their cell, on its patches and on its entire tiles', async (t) => {
    const folder = await tempFolder(t);
    const ndmi = { ...getModelSpec('ndmi'), maxPatches: 4, minPatches: 4, minValidationPatches: 1 };
    const own = [1, 2].map((one) => {
      const date = field(256, 192, { seed: one, time: Date.UTC(2020, 5, one) });
      for (const [at, value] of date.bands.swir16.entries()) date.bands.swir16[at] = value / one;
      const source = { dates: [writeDate(folder, `${one}`, date)], scored: [0] };
      return [{ ...cell(`p${one}`, datasetOf(ndmi, [date])), source }];
    });
    const { all } = await trainAll(tf, ndmi, own, 1);
    const [{ model, trained }] = all as [(typeof all)[number]];
    const scores = trained.members.flatMap((member) => member.places);
    const ranges = own.map(([{ dataset }]) => displayRange(dataset.train));
    assert.notDeepEqual(ranges[0], ranges[1]);
    assert.deepEqual(
      scores.map((one) => one.displayRange),
      ranges,
    );
    for (const [i, { metrics, displayRange, baseline }] of scores.entries()) {
      const [{ dataset, source }] = own[i]!;
      const tile = await scoreTile(tf, model, ndmi, displayRange!, source);
      assert.deepEqual(metrics.tile, tile);
      assert.equal(tile.msSsim!.scales, 5);
      assert.deepEqual(baseline, evaluateBaselines(ndmi.target, dataset, displayRange));
    }
    const pooled = pooledCellScores(trained).metrics;
    assert.deepEqual(pooled.tile, {
      ...meanScores(scores.map(({ metrics }) => metrics.tile!)),
      dates: ['2020-06-01T00:00:00.000Z', '2020-06-02T00:00:00.000Z'],
    });
    const { mse: _mse, r2: _r2, ...images } = pooled.validation;
    const validations = scores.map(({ metrics }) => metrics.validation as Required<Metrics>);
    assert.deepEqual(images, meanScores(validations));
    assert.ok(images.images!.psnr >= 2);
    const { places } = distributedReport(trained, ['a', 'b'], 2);
    assert.deepEqual(
      places.map((one) => [one.displayRange, one.metrics]),
      scores.map((one) => [one.displayRange, one.metrics]),
    );
    for (const one of all) one.model.dispose();
  });

  it('averages the moving averages of batch normalisation over the ranks', async () => {
    const ndmi = { ...getModelSpec('ndmi'), maxPatches: 4, minPatches: 4, minValidationPatches: 1 };
    const own = [1, 2].map((one) => [cell(`p${one}`, datasetOf(ndmi, [field(320, 256, { seed: one })]))]);
    const { all, weights } = await trainAll(tf, ndmi, own, 1);
    assert.deepEqual(weights[1], weights[0]);
    for (const { model } of all) model.dispose();
  });

  it('also reduces the gradients of a discriminator', async () => {
    const removal = {
      ...getModelSpec('cloud-removal'),
      maxPatches: 2,
      minPatches: 2,
      minValidationPatches: 1,
    };
    const own = [1, 2].map((one) => {
      const clear = field(320, 256, { seed: one });
      return [cell(`p${one}`, datasetOf(removal, [clouded(clear), clear], [{ cloudy: 0, clear: 1 }]))];
    });
    const { all, weights } = await trainAll(tf, removal, own, 1);
    assert.deepEqual(weights[1], weights[0]);
    const trainable = (model: LayersModel) =>
      model.trainableWeights.reduce((sum, one) => sum + one.shape.reduce<number>((a, b) => a * b!, 1), 0);
    assert.ok(all[0]!.trained.parameters > trainable(all[0]!.model));
    for (const { model } of all) model.dispose();
  });

  it('gives the same result for the same seed on a single rank, and leaves no tensors behind', async () => {
    const tensors = tf.memory().numTensors;
    const once = async (ring: ProcessGroup) => {
      const { model, trained } = await trainDataParallel(tf, spec, cells[0]!, 0, ring, { seed, epochs: 2 });
      const values = await valuesOf(model);
      model.dispose();
      return { values, losses: trained.losses, report: distributedReport(trained, ['a'], 1) };
    };
    const first = await once(SINGLE_PROCESS_GROUP);
    assert.deepEqual(await once(SINGLE_PROCESS_GROUP), first);
    assert.deepEqual(
      first.report.members.map(({ bytesSent, ratio }) => [bytesSent, ratio]),
      [[0, null]],
    );
    assert.equal(tf.memory().numTensors, tensors);
  });

  it('fails on all ranks if the loss of one is NaN', async () => {
    const { rings, links } = await ringOf(2);
    const dataset = datasetOf(spec, [field(128, 128)]);
    const wild = structuredClone(dataset);
    wild.train.targets.fill(Number.NaN);
    const ends = await Promise.allSettled(
      [dataset, wild].map((one, i) =>
        trainDataParallel(tf, spec, [cell(`p${i}`, one)], 0, rings[i]!, { seed, epochs: 2 }).catch(
          (error) => {
            links[i]!.fail(error);
            throw error;
          },
        ),
      ),
    );
    for (const end of ends) assert.ok(end.status === 'rejected' && end.reason.code === diverged.code);
  });
});
