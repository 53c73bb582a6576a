/** Turns a model's description into a tfjs layers model, of standard layers alone, so that it opens anywhere. */
import type { Tensor } from '@tensorflow/tfjs-core';
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import { type LinearFit, ridge, startSums } from '../baselines.js';
import { inputBatches } from '../batch.js';
import type { Tf } from '../engine/tf.js';
import type { PatchSet } from '../patches.js';
import { patchesAtOnce, predict } from '../predict-patches.js';
import { attentionMap } from './attention.js';
import { apply, LayerMaker } from './layers.js';
import type { LayerSpec, ModelSpec } from './spec.js';

/** The layer that holds the line with which a model begins. */
const LINE = 'line';
/** The layer that makes, of the features, what is added to it. */
const CHANGE = 'change';

/**
 * A fresh model, the same for the same seed. It begins as the straight line that fits the training data best, and learns what
 * that leaves. So it takes few epochs to be of use, and is seldom worse than what needs no training. A model that removes cloud begins
 * with the date as it is, and with the line, which fits its cloudy pixels, where its map of attention sees cloud. Without `straight` there is no line.
 * A model with attention has its latest map as a second output.
 */
export function buildModel(tf: Tf, spec: ModelSpec, seed: number, straight?: LinearFit): LayersModel {
  const { inputs, patchSize, target } = spec;
  const { layers } = tf;
  const make = new LayerMaker(tf, seed);
  // A net without dense layers takes any size, so that a whole tile can be predicted in large pieces.
  const side = target.kind === 'mean' ? patchSize : null;
  const input = tf.input({ shape: [side, side, inputs.length], name: 'input' });
  const state: Graph = { x: input, skips: [] };
  const mixes: { name: string; layer: LayerSpec & { type: 'mix' } }[] = [];
  for (const layer of spec.layers) {
    if (layer.type === 'mix') {
      const { name } = make.named('mix');
      mixes.push({ name, layer });
      const filters = layer.bias.length;
      state.x = make.conv(state.x, filters, 1, { trainable: false, name });
    } else addLayer(make, state, layer);
  }
  const zeros = { kernelInitializer: 'zeros', useBias: false, name: CHANGE } as const;
  const line = { kernelInitializer: 'zeros', name: LINE } as const;
  const outputs = {
    mean: () => [
      apply(
        layers.dense({ units: 1, ...line }),
        apply(layers.globalAveragePooling2d({ name: 'bands', trainable: false }), input),
      ),
      apply(layers.dense({ units: 1, ...zeros }), state.x),
    ],
    map: () => [make.conv(input, 1, 1, line), make.conv(state.x, 1, 1, zeros)],
    // The line, less the date itself, where the map of attention sees cloud.
    clear: () => [
      input,
      make.multiply(make.conv(input, inputs.length, 1, line), state.attention!),
      make.conv(state.x, inputs.length, 3, zeros),
    ],
  };
  const output = layers.add({ name: 'output' }).apply(outputs[target.kind]()) as SymbolicTensor;
  const model = tf.model({
    inputs: input,
    outputs: state.attention ? [output, state.attention] : output,
    name: spec.name,
  });
  for (const { name, layer } of mixes) setLayer(tf, model, name, layer.weights, layer.bias);
  if (straight) {
    const ofBands = inputs.map((_, band) =>
      straight.weights.map((row, output) => row[band] - (target.kind === 'clear' && band === output ? 1 : 0)),
    );
    setLayer(tf, model, LINE, ofBands, straight.bias);
  }
  return model;
}

/** Fits the line of a model anew to what all else of it leaves of the targets. */
export function fitLine(tf: Tf, model: LayersModel, patches: PatchSet): void {
  const { kernel, bias } = valuesOf(model, LINE);
  setLayer(tf, model, LINE, Array(kernel.length).fill(Array(bias.length).fill(0)), bias.fill(0));
  const left = residuals(tf, model, patches);
  addToLayer(tf, model, LINE, ridge(startSums({ ...patches, targets: left })));
}

/**
 * Moves the last layers of a model that comes from another place towards what fits the patches: the line, and of a model for maps also the layer
 * that is added to it, both at once. What they say already counts as much as one sample of each patch (ridge regression of what the model leaves,
 * so its penalty draws towards the old weights): it has the light of this place before it learns, and still knows colours that few of
 * the patches show. A model for means has too few samples for its many features, and one for places without cloud is not linear in them.
 */
export function shiftHead(tf: Tf, model: LayersModel, patches: PatchSet): void {
  const left = residuals(tf, model, patches);
  const isLinear = patches.counts && !patches.cloud;
  const { inputs, inputBands } = isLinear ? withFeatures(tf, model, patches) : patches;
  const { weights, bias } = ridge(
    startSums({ ...patches, inputs, inputBands, targets: left }),
    patches.count,
  );
  const bands = patches.inputBands;
  addToLayer(tf, model, LINE, { weights: weights.map((row) => row.slice(0, bands)), bias });
  if (isLinear) addToLayer(tf, model, CHANGE, { weights: weights.map((row) => row.slice(bands)), bias: [] });
}

/** What a model leaves of the targets. */
function residuals(tf: Tf, model: LayersModel, patches: PatchSet): Float32Array {
  const predicted = predict(tf, model, patches);
  return patches.targets.map((target, i) => target - predicted[i]);
}

/** The inputs, and after them the features of which the last layer makes what is added to the line; for each pixel. */
function withFeatures(
  tf: Tf,
  model: LayersModel,
  patches: PatchSet,
): Pick<PatchSet, 'inputs' | 'inputBands'> {
  const features = model.getLayer(CHANGE).input as SymbolicTensor;
  const upTo = tf.model({ inputs: model.inputs, outputs: [model.inputs[0], features] });
  const inputBands = patches.inputBands + features.shape.at(-1)!;
  const inputs = new Float32Array((patches.inputs.length / patches.inputBands) * inputBands);
  for (const { from, tensor } of inputBatches(tf, patches, patchesAtOnce(patches))) {
    const joined = tf.tidy(() => tf.concat(upTo.apply(tensor, { training: false }) as Tensor[], -1));
    inputs.set(joined.dataSync<'float32'>(), from * patches.size ** 2 * inputBands);
    tf.dispose([joined, tensor]);
  }
  return { inputs, inputBands };
}

function addToLayer(tf: Tf, model: LayersModel, name: string, { weights, bias: constants }: LinearFit): void {
  const { kernel, bias } = valuesOf(model, name);
  const ofInputs = kernel.map((row, input) => row.map((weight, output) => weight + weights[output][input]));
  setLayer(
    tf,
    model,
    name,
    ofInputs,
    bias.map((constant, output) => constant + constants[output]),
  );
}

/** The kernel of a layer that is linear in each pixel, [input][output], and its bias, without items where it has none. */
function valuesOf(model: LayersModel, name: string): { kernel: number[][]; bias: number[] } {
  const [kernel, bias] = model.getLayer(name).getWeights();
  const outputs = kernel.shape.at(-1)!;
  const values = kernel.dataSync<'float32'>();
  return {
    kernel: Array.from({ length: values.length / outputs }, (_, input) => [
      ...values.subarray(input * outputs, (input + 1) * outputs),
    ]),
    bias: bias ? [...bias.dataSync<'float32'>()] : [],
  };
}

/** `weights` by input, then by output. */
function setLayer(tf: Tf, model: LayersModel, name: string, weights: number[][], bias: number[]): void {
  const layer = model.getLayer(name);
  const values = layer.weights.map(({ shape }, i) =>
    tf.tensor(i === 0 ? weights.flat() : bias, shape as number[]),
  );
  layer.setWeights(values);
  tf.dispose(values);
}

/** A graph as far as it is made. */
interface Graph {
  x: SymbolicTensor;
  /** Results that wait for an `up` of their size, the smallest last. */
  skips: SymbolicTensor[];
  attention?: SymbolicTensor;
}

function addLayer(make: LayerMaker, graph: Graph, layer: Exclude<LayerSpec, { type: 'mix' }>): void {
  const { layers } = make.tf;
  const { x } = graph;
  switch (layer.type) {
    case 'cell': {
      const y = make.conv(x, layer.filters, 3, { activation: 'relu' });
      graph.x = apply(layers.averagePooling2d({ poolSize: 2, ...make.named('pool') }), y);
      return;
    }
    case 'average':
      graph.x = apply(layers.globalAveragePooling2d({ trainable: false, ...make.named('average') }), x);
      return;
    case 'dense': {
      const { units, activation } = layer;
      const kernelInitializer = make.kernel();
      graph.x = apply(layers.dense({ units, activation, kernelInitializer, ...make.named('dense') }), x);
      return;
    }
    case 'block':
      graph.x = make.block(x, layer.filters);
      return;
    case 'down': {
      const kept = make.block(x, layer.filters);
      graph.skips.push(kept);
      graph.x = apply(layers.maxPooling2d({ poolSize: 2, ...make.named('pool') }), kept);
      return;
    }
    case 'up': {
      const options = { filters: layer.filters, kernelSize: 2, strides: 2, padding: 'same' as const };
      const kernelInitializer = make.kernel();
      const up = layers.conv2dTranspose({ ...options, kernelInitializer, ...make.named('up') });
      graph.x = make.block(make.join(graph.skips.pop()!, apply(up, x)), layer.filters);
      return;
    }
    case 'conv':
      graph.x = make.relu(make.conv(x, layer.filters, 3, { useBias: false }));
      return;
    case 'residual':
      graph.x = make.relu(make.add(bottleneck(make, x), x));
      return;
    case 'attention':
      graph.attention = attentionMap(make, x);
      return;
    case 'attentive':
      graph.x = make.relu(make.add(make.multiply(bottleneck(make, x), graph.attention!), x));
  }
}

/** Convolution 1x1, ReLU, 3x3 with dilation 2, ReLU, 1x1, of as many filters as `x` has, without bias. */
function bottleneck(make: LayerMaker, x: SymbolicTensor): SymbolicTensor {
  const filters = x.shape.at(-1) as number;
  const first = make.conv(x, filters, 1, { useBias: false, activation: 'relu' });
  const wide = make.conv(first, filters, 3, { useBias: false, activation: 'relu', dilationRate: 2 });
  return make.conv(wide, filters, 1, { useBias: false });
}
