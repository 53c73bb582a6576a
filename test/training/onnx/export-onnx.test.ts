/** onnxruntime computes the same results from exported ONNX files as tfjs from the models. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import { loadEngine } from '../../../src/engines/load.js';
import type { Tf } from '../../../src/engines/tfjs.js';
import { NETS, patchSide, storedNet } from '../../../src/hyperspectral/cnn/net.js';
import { exportOnnx, getModelSpec } from '../../../src/training/index.js';
import { buildModel } from '../../../src/training/models/network.js';
import { type ModelSpec, withHistory } from '../../../src/training/models/spec.js';
import { type ModelFiles, saveModel } from '../../../src/training/models/weights.js';
import { randomStream } from '../../../src/utils/random.js';
import { installPython } from '../../conformance/python.js';
import { tempFolder } from '../../support/temp.js';

const fixtures = fileURLToPath(new URL('../../../../test/fixtures/training/', import.meta.url));
const fixture = join(fixtures, 'onnx.json');
const ABOUT = 'a model for a test';

interface Values {
  shape: number[];
  values: number[];
}

/** A model with all exportable kinds of layers, and the results of onnxruntime for it. */
interface Fixture {
  'model.json': object;
  /** Base64. */
  'weights.bin': string;
  sha256: string;
  input: Values;
  outputs: Record<string, Values>;
}

let tf: Tf;
before(async () => {
  ({ tf } = await loadEngine('wasm'));
});

/** Small layers of every kind and padding. */
function everyLayer(): LayersModel {
  const { layers } = tf;
  type Applied = { apply(x: SymbolicTensor | SymbolicTensor[]): unknown };
  const on = (x: SymbolicTensor | SymbolicTensor[], ...chain: Applied[]) =>
    chain.reduce<SymbolicTensor | SymbolicTensor[]>(
      (y, one) => one.apply(y) as SymbolicTensor,
      x,
    ) as SymbolicTensor;
  const input = tf.input({ shape: [13, 21, 3], name: 'input' });
  const wide = on(
    input,
    layers.conv2d({ filters: 4, kernelSize: [3, 4], padding: 'same', dilationRate: 2, activation: 'relu' }),
  );
  const small = on(
    wide,
    layers.conv2d({ filters: 6, kernelSize: 4, strides: 2, padding: 'same', useBias: false }),
    layers.batchNormalization(),
    layers.leakyReLU({ alpha: 0.2 }),
    layers.conv2d({ filters: 4, kernelSize: 3, strides: [1, 2], padding: 'valid', activation: 'sigmoid' }),
  );
  const pooled = on(small, layers.maxPooling2d({ poolSize: 3, strides: 2, padding: 'same' }));
  const large = [
    layers.conv2dTranspose({ filters: 2, kernelSize: 3, strides: 2, padding: 'same' }),
    layers.conv2dTranspose({ filters: 3, kernelSize: 2, strides: 2, padding: 'valid', useBias: false }),
    layers.conv2dTranspose({ filters: 2, kernelSize: 1, strides: 2, padding: 'same' }),
    layers.conv2dTranspose({ filters: 2, kernelSize: 1, strides: 2, padding: 'valid' }),
  ].map((one) => on(pooled, one));
  const joined = on(large, layers.concatenate());
  const averaged = on(
    joined,
    layers.averagePooling2d({ poolSize: 3, strides: 1, padding: 'same' }),
    layers.averagePooling2d({ poolSize: 2 }),
    layers.batchNormalization({ center: false, scale: false }),
  );
  const shifted = on(
    averaged,
    layers.depthwiseConv2d({ kernelSize: 2, depthMultiplier: 2, padding: 'same' }),
    layers.cropping2D({ cropping: [[1, 0], [0, 1]] }), // biome-ignore format: rows, then columns
    layers.zeroPadding2d({ padding: [[0, 1], [1, 0]] }), // biome-ignore format: the same
  );
  const map = on(
    shifted,
    layers.conv2d({ filters: 1, kernelSize: 1 }),
    layers.activation({ activation: 'sigmoid' }),
    layers.conv2d({ filters: 2, kernelSize: 1, activation: 'softmax' }),
    layers.conv2d({ filters: 1, kernelSize: 1 }),
  );
  const seen = on([on(shifted, layers.reLU()), map], layers.multiply());
  const image = on([seen, shifted, seen], layers.add({ name: 'image' }));
  const numbers = on(
    [on(image, layers.globalAveragePooling2d({})), on(image, layers.globalMaxPooling2d({}))],
    layers.concatenate(),
    layers.batchNormalization(),
    layers.dense({ units: 5, activation: 'relu' }),
    layers.dense({ units: 4, activation: 'tanh' }),
    layers.dense({ units: 3, activation: 'softmax' }),
    layers.dense({ units: 2, useBias: false, name: 'numbers' }),
  );
  return tf.model({ inputs: input, outputs: [image, numbers], name: 'every-layer' });
}

/** Randomises the weights, so that none is zero or one and no two are equal. */
function shake(model: LayersModel): LayersModel {
  const random = randomStream(7).next;
  for (const layer of model.layers) {
    const weights = layer.getWeights().map((weight) => {
      const scale = 1 / Math.sqrt(Math.max(1, weight.size / (weight.shape.at(-1) ?? 1)));
      const values = Float32Array.from({ length: weight.size }, () => scale * (2 * random() - 1));
      return { values, shape: weight.shape };
    });
    // The last weights of this layer are variances.
    if (layer.getClassName() === 'BatchNormalization') {
      const { values } = weights.at(-1)!;
      for (let i = 0; i < values.length; i++) values[i] = 0.5 + Math.abs(values[i]!);
    }
    layer.setWeights(weights.map(({ values, shape }) => tf.tensor(values, shape)));
  }
  return model;
}

function inputOf(shape: number[]): Values {
  const random = randomStream(11).next;
  const values = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => Math.fround(random()));
  return { shape, values };
}

/** The results of tfjs by output name. */
function predicted(model: LayersModel, input: Values): Record<string, Values> {
  const results = [model.predict(tf.tensor(input.values, input.shape))].flat() as Tensor[];
  return Object.fromEntries(
    results.map((result, i) => [
      model.outputNames[i]!,
      { shape: result.shape, values: Array.from(result.dataSync()) },
    ]),
  );
}

function assertClose(actual: Record<string, Values>, expected: Record<string, Values>, what: string): void {
  assert.deepEqual(Object.keys(actual), Object.keys(expected), what);
  for (const [name, { shape, values }] of Object.entries(expected)) {
    assert.deepEqual(actual[name]!.shape, shape, `${what} ${name}`);
    const errors = values.map((value, i) => Math.abs(value - actual[name]!.values[i]!));
    const largest = Math.max(...values.map(Math.abs));
    assert.ok(Math.max(...errors) < 1e-5 * Math.max(1, largest), `${what} ${name}: ${Math.max(...errors)}`);
    assert.ok(new Set(values).size > 1, `${what} ${name} is all ${values[0]}`);
  }
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const onnxOf = (files: ModelFiles) => exportOnnx(files['model.json'], files['weights.bin'], ABOUT);

test('onnxruntime computes the same as tfjs for every model and every layer type', async (t) => {
  const folder = await tempFolder(t);
  const python = await installPython(join(folder, 'python'), ['onnxruntime==1.32.0']);
  if (python.reason !== undefined) return t.skip(python.reason);
  const row = [0.1, -0.2, 0.3];
  const planes = Array.from({ length: 13 }, (_, plane) => row[plane % 3]! / (plane + 1));
  const line = { weights: [row], bias: [0.3] };
  const lines = { weights: [planes, planes.toReversed(), planes], bias: [0.3, 0.2, 0.1] };
  const history = withHistory(getModelSpec('ndvi'));
  const linear = (planes: number) => ({
    weights: [Array.from({ length: planes }, (_, p) => (p - 3) / 20)],
    bias: [0.1],
  });
  const withHistoryNamed = (layers: ModelSpec['layers'], name: string) =>
    buildModel(tf, { ...history, layers, name }, 1, linear(11), linear(11));
  const models: [LayersModel, Values][] = [
    [withHistoryNamed(history.layers, 'history'), inputOf([5, 16, 16, 11])],
    [withHistoryNamed([], 'history-linear'), inputOf([5, 16, 16, 11])],
    [
      buildModel(tf, { ...withHistory(getModelSpec('ndmi')), name: 'ndmi-history' }, 1),
      inputOf([2, 32, 64, 12]),
    ],
    [everyLayer(), inputOf([2, 13, 21, 3])],
    [buildModel(tf, getModelSpec('ndvi'), 1, line), inputOf([5, 16, 16, 3])],
    [buildModel(tf, getModelSpec('ndmi'), 1, line), inputOf([2, 32, 64, 3])],
    [buildModel(tf, getModelSpec('cloud-removal'), 1, lines), inputOf([2, 20, 24, 13])],
  ];
  const standard = { centre: new Float64Array(23).fill(0.3), deviation: new Float64Array(23).fill(0.2) };
  for (const name of NETS) {
    const { model } = storedNet(tf, { name, bands: 23, classes: 3 }, standard);
    model.name = name;
    const side = patchSide(name);
    models.push([model, inputOf(side === 1 ? [4, 23] : [4, side, side, 23])]);
  }
  const expected: Record<string, Record<string, Values>> = {};
  const files: Record<string, ModelFiles> = {};
  for (const [model, input] of models) {
    shake(model);
    expected[model.name] = predicted(model, input);
    files[model.name] = await saveModel(tf, model);
    await writeFile(join(folder, `${model.name}.onnx`), onnxOf(files[model.name]!));
    await writeFile(join(folder, `${model.name}.json`), JSON.stringify(input));
  }
  await promisify(execFile)(join(python.bin, 'python'), [join(fixtures, 'run_onnx.py'), folder]);
  for (const [{ name }] of models) {
    const outputs = JSON.parse(await readFile(join(folder, `${name}.out.json`), 'utf8'));
    assertClose(outputs, expected[name]!, name);
    if (name !== 'every-layer' || !process.env.UPDATE_FIXTURES) continue;
    writeFileSync(
      fixture,
      JSON.stringify({
        'model.json': JSON.parse(new TextDecoder().decode(files[name]!['model.json'])),
        'weights.bin': Buffer.from(files[name]!['weights.bin']).toString('base64'),
        sha256: sha256(onnxOf(files[name]!)),
        input: models.find(([other]) => other.name === name)![1],
        outputs,
      } satisfies Fixture),
    );
  }
});

test('the exported file equals the one that onnxruntime has verified, and tfjs agrees with it', async () => {
  const stored: Fixture = JSON.parse(readFileSync(fixture, 'utf8'));
  const json = Buffer.from(JSON.stringify(stored['model.json']));
  const weights = Buffer.from(stored['weights.bin'], 'base64');
  assert.equal(sha256(exportOnnx(json, weights, ABOUT)), stored.sha256);
  const { modelTopology, weightsManifest } = stored['model.json'] as {
    modelTopology: object;
    weightsManifest: { weights: [] }[];
  };
  const model = await tf.loadLayersModel(
    tf.io.fromMemory({
      modelTopology,
      weightSpecs: weightsManifest[0]!.weights,
      weightData: Uint8Array.from(weights).buffer,
    }),
  );
  assertClose(predicted(model, stored.input), stored.outputs, 'stored');
});

test('errors name unsupported layers and damaged files', async () => {
  const input = tf.input({ shape: [8, 8, 2], name: 'input' });
  const filesOf = (layer: { apply(x: SymbolicTensor): unknown }) =>
    saveModel(tf, tf.model({ inputs: input, outputs: layer.apply(input) as SymbolicTensor }));
  const refused = async (layer: { apply(x: SymbolicTensor): unknown }, message: RegExp) => {
    const files = await filesOf(layer);
    assert.throws(() => onnxOf(files), { code: 'TW_TRAIN_ONNX_LAYER', message });
  };
  const { layers } = tf;
  await refused(layers.upSampling2d({ name: 'up' }), /layer up \(UpSampling2D\)/);
  await refused(layers.conv2d({ filters: 1, kernelSize: 1, activation: 'selu' }), /activation selu/);
  await refused(layers.dense({ units: 1 }), /Dense of an image/);
  await refused(layers.maxPooling2d({ poolSize: 2, dataFormat: 'channelsFirst' }), /channels first/);
  await refused(layers.reLU({ maxValue: 6 }), /ReLU with a maximum/);
  await refused(layers.batchNormalization({ axis: 1 }), /another axis/);
  const files = await filesOf(layers.conv2d({ filters: 1, kernelSize: 1 }));
  const cut = { ...files, 'weights.bin': files['weights.bin'].subarray(4) };
  assert.throws(() => onnxOf(cut), { code: 'TW_TRAIN_ONNX_WEIGHTS', message: /8 bytes instead of 12/ });
});
