/** Networks of dense layers: gradients, minimisation, and files that TensorFlow.js and onnxruntime read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Tensor } from '@tensorflow/tfjs-core';
import { loadEngine } from '../../src/engines/load.js';
import { decodedSums, encodedSums } from '../../src/hyperspectral/classification/dataset.js';
import { gradientSums, SCORE_UNIT } from '../../src/hyperspectral/dense-training.js';
import {
  centredLayers,
  countOf,
  layerViews,
  parseNetwork,
  saveClassifier,
  standardiseValue,
} from '../../src/hyperspectral/methods/dense-network.js';
import { pixelFunction } from '../../src/hyperspectral/methods/methods.js';
import { minimiseLbfgs, preconditioner } from '../../src/hyperspectral/optimizers.js';
import { inPrecision, type LabelledSpectra, sampleFractions } from '../../src/hyperspectral/samples.js';
import { exportOnnx } from '../../src/training/index.js';
import { loadModel } from '../../src/training/models/weights.js';
import { randomStream } from '../../src/utils/random.js';

const { next } = randomStream(7);
const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());

/** Random spectra in panels, and the same pixel by pixel. */
function randomSpectra(pixels: number, bands: number, classes: number) {
  const rows = Array.from({ length: pixels }, () => Float64Array.from({ length: bands }, normal));
  const codes = Uint8Array.from({ length: pixels }, () => 1 + Math.floor(next() * classes));
  return { rows, codes, spectra: spectraOf(rows, codes) };
}

function spectraOf(rows: Float64Array[], codes: Uint8Array<ArrayBuffer>) {
  const pixels = rows.length;
  const bands = rows[0]!.length;
  const values = new Float32Array(Math.ceil(pixels / 64) * 64 * bands);
  for (const [i, row] of rows.entries())
    for (const [b, value] of row.entries()) values[(Math.floor(i / 64) * bands + b) * 64 + (i % 64)] = value;
  return {
    fold: 0,
    near: 1,
    pixels,
    codes,
    squares: new Int32Array(pixels),
    values,
  } satisfies LabelledSpectra;
}

const classOf = Uint8Array.from({ length: 256 }, (_, code) => Math.max(0, code - 1));

/** The sum of the cross entropy, straight from its definition. */
function lossAt(rows: Float64Array[], codes: Uint8Array, parameters: Float64Array, sizes: number[]): number {
  let loss = 0;
  for (const [i, row] of rows.entries()) {
    let values = Array.from(row);
    const layers = layerViews(parameters, sizes);
    for (const [l, { weights, bias }] of layers.entries()) {
      values = Array.from(bias, (b, r) =>
        values.reduce((sum, value, c) => sum + weights[r * values.length + c]! * value, b),
      );
      if (l < layers.length - 1) values = values.map(Math.tanh);
    }
    loss += Math.log(values.reduce((sum, value) => sum + Math.exp(value), 0)) - values[classOf[codes[i]!]!]!;
  }
  return loss;
}

for (const sizes of [
  [5, 3],
  [70, 8, 3],
  [66, 12, 8, 6],
])
  test(`the gradient of a network of ${sizes} follows its definition, in every order of the pixels`, () => {
    const { rows, codes, spectra } = randomSpectra(150, sizes[0]!, sizes.at(-1)!);
    const parameters = Float64Array.from({ length: countOf(sizes) }, () => 0.3 * normal());
    const units = { loss: SCORE_UNIT, gradient: SCORE_UNIT };
    const { loss, gradient } = gradientSums({
      spectra: [spectra],
      classOf,
      sizes,
      parameters,
      units,
    });
    const truth = lossAt(rows, codes, parameters, sizes);
    assert.ok(Math.abs(loss * SCORE_UNIT - truth) < 1e-4 * truth, `${loss * SCORE_UNIT} ${truth}`);
    for (let i = 0; i < 40; i++) {
      const at = Math.floor(next() * parameters.length);
      const moved = (by: number) => parameters.map((value, k) => (k === at ? value + by : value));
      const slope =
        (lossAt(rows, codes, moved(1e-5), sizes) - lossAt(rows, codes, moved(-1e-5), sizes)) / 2e-5;
      const found = gradient[at]! * SCORE_UNIT;
      assert.ok(Math.abs(found - slope) < 1e-3 + 1e-4 * Math.abs(slope), `${at}: ${found} ${slope}`);
    }
    // In parts and in a different order.
    const panel = 64 * sizes[0]!;
    const parts = [1, 2, 0].map((p) => ({
      ...spectra,
      pixels: Math.min(64, 150 - 64 * p),
      codes: codes.slice(64 * p, 64 * (p + 1)),
      values: spectra.values.slice(p * panel, (p + 1) * panel),
    }));
    const of = { kind: 'gradient', classOf, sizes, parameters } as const;
    assert.deepEqual(gradientSums({ ...of, spectra: parts, units }), { loss, gradient });

    const halves = (one: (typeof parts)[0]) => ({ ...one, values: inPrecision(one.values, 'mixed') });
    const coarse = { loss: SCORE_UNIT, gradient: 2 ** -16 };
    const mixed = gradientSums({ ...of, spectra: [halves(spectra)], units: coarse });
    assert.deepEqual(gradientSums({ ...of, spectra: parts.map(halves), units: coarse }), mixed);
    for (const [at, value] of mixed.gradient.entries())
      assert.ok(Math.abs(value * coarse.gradient - gradient[at]! * SCORE_UNIT) < 0.05, `${at}`);
  });

test('sums are sent in 32 bits if all of them fit, and arrive unchanged', () => {
  const fitting = Float64Array.from([0, -1, 2 ** 31 - 1, 1 - 2 ** 31]);
  const larger = Float64Array.from([2 ** 31, -(2 ** 52)]);
  assert.deepEqual(Array.from(decodedSums(encodedSums(fitting), 4)), Array.from(fitting));
  assert.deepEqual(Array.from(decodedSums(encodedSums(larger), 2)), Array.from(larger));
  assert.equal(Buffer.from(encodedSums(fitting), 'base64').length, 16);
  assert.throws(() => decodedSums(encodedSums(fitting), 3), /16 bytes instead of 3 numbers/);
});

test('rare classes keep their pixels if memory cannot hold all pixels', () => {
  const shares = sampleFractions(
    new Map([
      [1, 100_000],
      [2, 50],
      [3, 1000],
    ]),
    10_105,
  );
  assert.deepEqual([shares[1], shares[2], shares[3]], [0.1, 1, 0.1]);
  assert.equal(shares[4], 0);
});

test('standardised values of damaged pixels are clamped to the limit', () => {
  const standard = { centre: Float64Array.of(1), deviation: Float64Array.of(1e-6) };
  assert.deepEqual(
    [1e9, -1e9, 1 + 1e-6].map((value) => Math.round(standardiseValue(value, 0, standard))),
    [10_000, -10_000, 1],
  );
});

test('the minimum of a curved valley is found', async () => {
  // Rosenbrock's function of ten numbers.
  const evaluate = async (x: Float64Array) => {
    const gradient = new Float64Array(x.length);
    let value = 0;
    for (let i = 0; i < x.length - 1; i++) {
      const [a, b] = [1 - x[i]!, x[i + 1]! - x[i]! ** 2];
      value += a * a + 100 * b * b;
      gradient[i]! += -2 * a - 400 * x[i]! * b;
      gradient[i + 1]! += 200 * b;
    }
    return { value: value + 1, gradient };
  };
  const found = await minimiseLbfgs(new Float64Array(10).fill(-0.5), evaluate, { iterations: 500 });
  assert.ok(
    found.every((value) => Math.abs(value - 1) < 1e-2),
    `${found}`,
  );
});

test('the covariance of correlated bands saves most evaluations and leads to the same minimum', async () => {
  const [pixels, bands, penalty] = [320, 12, 1e-4];
  const sizes = [bands, 3];
  const rows = Array.from({ length: pixels }, (_, i) => {
    const common = normal();
    return Float64Array.from(
      { length: bands },
      (_, b) => common + 0.03 * (normal() + Number(b % 3 === i % 3)),
    );
  });
  const codes = Uint8Array.from({ length: pixels }, (_, i) => 1 + (i % 3));
  const spectra = spectraOf(rows, codes);
  const covariance = new Float64Array(bands * bands);
  for (const row of rows)
    for (const at of covariance.keys())
      covariance[at]! += (row[at % bands]! * row[Math.floor(at / bands)]!) / pixels;
  const units = { loss: SCORE_UNIT, gradient: SCORE_UNIT };
  let evaluations = 0;
  const evaluate = async (parameters: Float64Array) => {
    evaluations++;
    const sums = gradientSums({ spectra: [spectra], classOf, sizes, parameters, units });
    const weights = bands * 3;
    const squares = parameters.subarray(0, weights).reduce((sum, weight) => sum + weight ** 2, 0);
    return {
      value: (sums.loss * SCORE_UNIT) / pixels + (penalty / 2) * squares,
      gradient: sums.gradient.map(
        (value, at) => (value * SCORE_UNIT) / pixels + (at < weights ? penalty * parameters[at]! : 0),
      ),
    };
  };
  const search = async (precondition?: (gradient: Float64Array) => Float64Array) => {
    evaluations = 0;
    const start = new Float64Array(countOf(sizes));
    const found = await minimiseLbfgs(start, evaluate, { iterations: 2000, precondition });
    const count = evaluations;
    return { count, value: (await evaluate(found)).value };
  };
  const plain = await search();
  const preconditioned = await search(preconditioner(covariance, sizes, penalty));
  assert.ok(preconditioned.count * 2 < plain.count, `${preconditioned.count} of ${plain.count}`);
  assert.ok(preconditioned.value < plain.value + 1e-4, `${preconditioned.value} ${plain.value}`);
});

test('a covariance that cannot be factored is ignored', () => {
  const covariance = Float64Array.of(1e20, 1e20, 1e20, 1e20);
  const gradient = Float64Array.of(1, 2, 3, 4, 5, 6);
  assert.deepEqual(preconditioner(covariance, [2, 2], 1e-4)(gradient), gradient);
});

test('a network is read back as written, and TensorFlow.js computes the same values from its files as the panels', async () => {
  const sizes = [6, 8, 3];
  const parameters = Float64Array.from({ length: countOf(sizes) }, () => Math.fround(normal()));
  const centre = Float64Array.from({ length: 6 }, () => Math.fround(normal()));
  const network = { centre, deviation: new Float64Array(6).fill(0.5), layers: layerViews(parameters, sizes) };
  const files = saveClassifier(network);
  const read = parseNetwork('classifier_x_gu', files['weights.bin']!, sizes);
  assert.deepEqual(read.layers, network.layers);
  assert.deepEqual(read.centre, centre);
  assert.ok(read.deviation.every((value) => Math.abs(value - 0.5) < 1e-9));
  assert.throws(() => parseNetwork('classifier_x_gu', files['weights.bin']!, [6, 4, 3]), {
    code: 'TW_ANALYSIS_CLASSIFIER',
  });

  const pixels = Array.from({ length: 70 }, () => Float32Array.from({ length: 6 }, normal));
  const planes = Array.from({ length: 6 }, (_, b) => Float32Array.from(pixels, (pixel) => pixel[b]!));
  const coding = { scales: new Array<number>(6).fill(1), offsets: new Array<number>(6).fill(0) };
  const { evaluate } = pixelFunction(
    { kind: 'probabilities', layers: centredLayers(read), centre: read.centre },
    coding,
  );
  const indexes = Int32Array.from({ length: 70 }, (_, i) => i);
  const { tf } = await loadEngine('wasm');
  const model = await loadModel(tf, files['model.json']!, files['weights.bin']!);
  const expected = model.predict(tf.tensor2d(pixels.map((pixel) => Array.from(pixel)))) as Tensor;
  const truth = expected.dataSync();
  for (const from of [0, 64]) {
    const found = evaluate(planes, indexes, from);
    for (let i = 0; i < Math.min(64, 70 - from); i++)
      for (let r = 0; r < 3; r++)
        assert.ok(Math.abs(found[r * 64 + i]! - truth[(from + i) * 3 + r]!) < 1e-5, `${from + i} ${r}`);
  }
  exportOnnx(files['model.json']!, files['weights.bin']!, 'a classifier');
});
