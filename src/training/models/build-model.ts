/** Turns a model's description into a tfjs layers model, of standard layers alone, so that it opens anywhere. */
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { LinearModel } from '../ridge-regression.js';
import { apply, LayerBuilder } from './layer-builder.js';
import { inputPlanes, type LayerSpec, type ModelSpec } from './model-spec.js';
import { attentionMap } from './spatial-attention.js';

/** The layer that holds the line with which a model begins. */
export const LINEAR_LAYER = 'line';
/** The layers that take the date with its clouds replaced, and where these are, out of the inputs of a model that removes cloud. */
const DATE_LAYER = 'date';
const CLOUD_LAYER = 'cloud';
/** The layer that makes, of the features, what is added to it. */
export const RESIDUAL_LAYER = 'change';

/**
 * A fresh model, the same for the same seed. It begins as the straight line that fits the training data best, and learns what
 * that leaves. So it takes few epochs to be of use, and is seldom worse than what needs no training. A model that removes cloud
 * returns the date as it is where there is no cloud, and begins with its prior elsewhere. Without `straight` there is no line.
 * A model with attention has its latest map as a second output.
 */
export function buildModel(tf: Tf, spec: ModelSpec, seed: number, straight?: LinearModel): LayersModel {
  const { inputs, patchSize, target } = spec;
  const { layers } = tf;
  const make = new LayerBuilder(tf, seed);
  // A net without dense layers takes any size, so that a whole tile can be predicted in large pieces.
  const side = target.kind === 'mean' ? patchSize : null;
  const input = tf.input({ shape: [side, side, inputPlanes(spec)], name: 'input' });
  const state: Graph = { x: input, skips: [] };
  const mixes: { name: string; layer: LayerSpec & { type: 'mix' } }[] = [];
  for (const layer of spec.layers) {
    if (layer.type === 'mix') {
      const { name } = make.uniqueName('mix');
      mixes.push({ name, layer });
      const filters = layer.bias.length;
      state.x = make.conv(state.x, filters, 1, { trainable: false, name });
    } else addLayer(make, state, layer);
  }
  const zeros = { kernelInitializer: 'zeros', useBias: false, name: RESIDUAL_LAYER } as const;
  const line = { kernelInitializer: 'zeros', name: LINEAR_LAYER } as const;
  const outputs = {
    mean: () => [
      apply(
        layers.dense({ units: 1, ...line }),
        apply(layers.globalAveragePooling2d({ name: 'bands', trainable: false }), input),
      ),
      apply(layers.dense({ units: 1, ...zeros }), state.x),
    ],
    map: () => [make.conv(input, 1, 1, line), make.conv(state.x, 1, 1, zeros)],
    // The line and the change are added where there is cloud.
    clear: () => [
      make.conv(input, inputs.length, 1, { trainable: false, useBias: false, name: DATE_LAYER }),
      make.multiply(
        make.add(make.conv(input, inputs.length, 1, line), make.conv(state.x, inputs.length, 3, zeros)),
        make.conv(input, 1, 1, { trainable: false, useBias: false, name: CLOUD_LAYER }),
      ),
    ],
  };
  const output = layers.add({ name: 'output' }).apply(outputs[target.kind]()) as SymbolicTensor;
  const model = tf.model({
    inputs: input,
    outputs: state.attention ? [output, state.attention] : output,
    name: spec.name,
  });
  for (const { name, layer } of mixes) setLinearWeights(tf, model, name, layer.weights, layer.bias);
  const planes = Array.from({ length: inputPlanes(spec) }, (_, plane) => plane);
  if (target.kind === 'clear') {
    const date = planes.map((plane) => inputs.map((_, output) => (plane === output ? 1 : 0)));
    const cloud = planes.map((plane) => [plane === planes.length - 1 ? 1 : 0]);
    setLinearWeights(tf, model, DATE_LAYER, date, []);
    setLinearWeights(tf, model, CLOUD_LAYER, cloud, []);
  }
  if (straight) {
    const ofBands = planes.map((plane) => straight.weights.map((row) => row[plane]));
    setLinearWeights(tf, model, LINEAR_LAYER, ofBands, straight.bias);
  }
  return model;
}

/** Of a layer that is linear: `weights` by input, then by output. */
export function setLinearWeights(
  tf: Tf,
  model: LayersModel,
  name: string,
  weights: number[][],
  bias: number[],
): void {
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

function addLayer(make: LayerBuilder, graph: Graph, layer: Exclude<LayerSpec, { type: 'mix' }>): void {
  const { layers } = make.tf;
  const { x } = graph;
  switch (layer.type) {
    case 'cell': {
      const y = make.conv(x, layer.filters, 3, { activation: 'relu' });
      graph.x = apply(layers.averagePooling2d({ poolSize: 2, ...make.uniqueName('pool') }), y);
      return;
    }
    case 'average':
      graph.x = apply(layers.globalAveragePooling2d({ trainable: false, ...make.uniqueName('average') }), x);
      return;
    case 'dense': {
      const { units, activation } = layer;
      const kernelInitializer = make.kernel();
      graph.x = apply(layers.dense({ units, activation, kernelInitializer, ...make.uniqueName('dense') }), x);
      return;
    }
    case 'block':
      graph.x = make.block(x, layer.filters);
      return;
    case 'down': {
      const kept = make.block(x, layer.filters);
      graph.skips.push(kept);
      graph.x = apply(layers.maxPooling2d({ poolSize: 2, ...make.uniqueName('pool') }), kept);
      return;
    }
    case 'up': {
      const options = { filters: layer.filters, kernelSize: 2, strides: 2, padding: 'same' as const };
      const kernelInitializer = make.kernel();
      const up = layers.conv2dTranspose({ ...options, kernelInitializer, ...make.uniqueName('up') });
      graph.x = make.block(make.concatenate(graph.skips.pop()!, apply(up, x)), layer.filters);
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
function bottleneck(make: LayerBuilder, x: SymbolicTensor): SymbolicTensor {
  const filters = x.shape.at(-1) as number;
  const first = make.conv(x, filters, 1, { useBias: false, activation: 'relu' });
  const wide = make.conv(first, filters, 3, { useBias: false, activation: 'relu', dilationRate: 2 });
  return make.conv(wide, filters, 1, { useBias: false });
}
