/** Networks: tfjs layers models of specifications, of only standard layers, so that any tfjs program can open them. */
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { LinearModel } from '../ridge-regression.js';
import { historyLayout, inputPlanes, type LayerSpec, type ModelSpec } from './spec.js';

/** Momentum of the moving averages of batch normalisation, which inference uses. */
const BATCH_NORM_MOMENTUM = 0.9;
const LEAKY_RELU_SLOPE = 0.2;

/** Creates the layers of a graph and applies them. Names and seeds follow the order of creation, so that equal models give equal files. */
class LayerBuilder {
  private made = 0;

  constructor(
    readonly tf: Tf,
    private readonly seed: number,
  ) {}

  /** Applies a new convolution. Default: with bias, zero padding, He initialisation and linear activation. */
  conv(
    x: SymbolicTensor,
    filters: number,
    kernelSize: number,
    change: Partial<Parameters<Tf['layers']['conv2d']>[0]> = {},
  ): SymbolicTensor {
    const options = {
      filters,
      kernelSize,
      padding: 'same' as const,
      kernelInitializer: this.kernel(),
      ...this.uniqueName('conv'),
      ...change,
    };
    return apply(this.tf.layers.conv2d(options), x);
  }

  kernel() {
    // Multiplied, so that neighbouring seeds share no kernel.
    return this.tf.initializers.heNormal({ seed: Math.imul(this.seed, 0x9e3779b1) + this.made });
  }

  uniqueName(kind: string): { name: string } {
    return { name: `${kind}${this.made++}` };
  }

  relu(x: SymbolicTensor): SymbolicTensor {
    return apply(this.tf.layers.reLU(this.uniqueName('relu')), x);
  }

  /** Convolution, batch normalisation, leaky ReLU. */
  block(x: SymbolicTensor, filters: number, kernelSize = 3, strides = 1): SymbolicTensor {
    const { layers } = this.tf;
    // The normalisation would remove a bias.
    const y = this.conv(x, filters, kernelSize, { strides, useBias: false });
    const normal = apply(
      layers.batchNormalization({ momentum: BATCH_NORM_MOMENTUM, ...this.uniqueName('norm') }),
      y,
    );
    return this.leakyRelu(normal);
  }

  leakyRelu(x: SymbolicTensor): SymbolicTensor {
    return apply(this.tf.layers.leakyReLU({ alpha: LEAKY_RELU_SLOPE, ...this.uniqueName('leaky') }), x);
  }

  add(...terms: SymbolicTensor[]): SymbolicTensor {
    return this.tf.layers.add(this.uniqueName('add')).apply(terms) as SymbolicTensor;
  }

  multiply(...factors: SymbolicTensor[]): SymbolicTensor {
    return this.tf.layers.multiply(this.uniqueName('multiply')).apply(factors) as SymbolicTensor;
  }

  concatenate(...parts: SymbolicTensor[]): SymbolicTensor {
    return this.tf.layers.concatenate(this.uniqueName('join')).apply(parts) as SymbolicTensor;
  }
}

function apply(layer: { apply(x: SymbolicTensor): unknown }, x: SymbolicTensor): SymbolicTensor {
  return layer.apply(x) as SymbolicTensor;
}

type Margins = [rows: [number, number], columns: [number, number]];

/** For each direction, the rows and columns to pad and to crop, so that each pixel is shifted onto its neighbour. */
const ATTENTION_DIRECTIONS: { pad: Margins; crop: Margins }[] = [
  { pad: [[1, 0], [0, 0]], crop: [[0, 1], [0, 0]] },
  { pad: [[0, 1], [0, 0]], crop: [[1, 0], [0, 0]] },
  { pad: [[0, 0], [1, 0]], crop: [[0, 0], [0, 1]] },
  { pad: [[0, 0], [0, 1]], crop: [[0, 0], [1, 0]] },
]; // biome-ignore format: a direction a line
const ATTENTION_WEIGHT_FILTERS = 16;

/**
 * Returns an attention map of one channel, 0 to 1, which locates cloud from four directions (Pan 2020, `SAM`): two rounds in which each
 * pixel aggregates its neighbours, with a weight for each direction that a side branch computes from the features.
 */
function attentionMap(make: LayerBuilder, x: SymbolicTensor): SymbolicTensor {
  const filters = x.shape.at(-1) as number;
  const side = make.relu(make.conv(x, ATTENTION_WEIGHT_FILTERS, 3, { useBias: false }));
  const branch = make.relu(make.conv(side, ATTENTION_WEIGHT_FILTERS, 3, { useBias: false }));
  const weights = ATTENTION_DIRECTIONS.map(() => make.conv(branch, 1, 1, { activation: 'sigmoid' }));
  const first = aggregateNeighbours(make, make.conv(x, filters, 1, { useBias: false }), weights);
  const second = aggregateNeighbours(make, make.conv(first, filters, 1, { useBias: false }), weights);
  const mixed = make.relu(make.conv(second, filters, 1, { useBias: false }));
  return make.conv(mixed, 1, 1, { useBias: false, activation: 'sigmoid', name: 'attention' });
}

/**
 * For each direction: relu(w * neighbour + b + x) times the weight of the direction, with one w and b for each filter. A pixel at the
 * edge has no neighbour: relu(x).
 */
function aggregateNeighbours(
  make: LayerBuilder,
  x: SymbolicTensor,
  weights: SymbolicTensor[],
): SymbolicTensor {
  const { layers } = make.tf;
  return make.concatenate(
    ...ATTENTION_DIRECTIONS.map(({ pad, crop }, i) => {
      const scaled = apply(
        layers.depthwiseConv2d({
          kernelSize: 1,
          depthwiseInitializer: make.kernel(),
          ...make.uniqueName('scale'),
        }),
        x,
      );
      const cropped = apply(layers.cropping2D({ cropping: crop, ...make.uniqueName('crop') }), scaled);
      const shifted = apply(layers.zeroPadding2d({ padding: pad, ...make.uniqueName('shift') }), cropped);
      return make.multiply(make.relu(make.add(shifted, x)), weights[i]!);
    }),
  );
}

/** Layer with the linear function that a fresh model starts from. */
export const LINEAR_LAYER = 'line';
/** Fixed layers of a cloud-removal model that select, from its inputs, the date with its clouds replaced, and the cloud mask. */
const DATE_LAYER = 'date';
const CLOUD_LAYER = 'cloud';
/** Layer that computes, from the features, the residual that is added to the linear function. */
export const RESIDUAL_LAYER = 'change';
/** Fixed layers of a model that reads history: a linear function for pixels without one, and the plane that says which have one. */
const FALLBACK_LAYER = 'fallback';
const HISTORY_LAYER = 'history';

/**
 * Builds a fresh model. It is initialised with the ridge-regression fit, and the network learns the residual; so it needs few epochs, and
 * is rarely worse than the baselines. A cloud-removal model returns cloud-free pixels unchanged and starts from its prior elsewhere.
 * Without `linear`, the linear layer is 0. A specification without layers gives a linear model. A model that reads history is `fallback`
 * where it has none, else `linear` and the residual. A model with attention has its last attention map as
 * a second output. The same seed gives the same model.
 */
export function buildModel(
  tf: Tf,
  spec: ModelSpec,
  seed: number,
  linear?: LinearModel,
  fallback?: LinearModel,
): LayersModel {
  const { inputs, patchSize, target } = spec;
  const { layers } = tf;
  const make = new LayerBuilder(tf, seed);
  // A fully convolutional network accepts any size, so that a tile can be predicted in large windows.
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
    } else state.x = addLayer(make, state, layer);
  }
  const zeros = { kernelInitializer: 'zeros', useBias: false, name: RESIDUAL_LAYER } as const;
  const line = { kernelInitializer: 'zeros', name: LINEAR_LAYER } as const;
  const fixed = { trainable: false, kernelInitializer: 'zeros' } as const;
  const hasLayers = spec.layers.length > 0;
  const outputs = {
    mean: () => {
      const means = apply(layers.globalAveragePooling2d({ name: 'bands', trainable: false }), input);
      const dense = (options: object, x = means) => apply(layers.dense({ units: 1, ...options }), x);
      return withFallback(dense, [dense(line), ...(hasLayers ? [dense(zeros, state.x)] : [])]);
    },
    map: () => {
      const conv = (options: object, x = input) => make.conv(x, 1, 1, options);
      return withFallback(conv, [conv(line), ...(hasLayers ? [conv(zeros, state.x)] : [])]);
    },
    // The linear function and the residual apply only to cloudy pixels.
    clear: () => [
      make.conv(input, inputs.length, 1, { trainable: false, useBias: false, name: DATE_LAYER }),
      make.multiply(
        make.add(make.conv(input, inputs.length, 1, line), make.conv(state.x, inputs.length, 3, zeros)),
        make.conv(input, 1, 1, { trainable: false, useBias: false, name: CLOUD_LAYER }),
      ),
    ],
  };
  function withFallback(
    linear: (options: object) => SymbolicTensor,
    terms: SymbolicTensor[],
  ): SymbolicTensor[] {
    if (!spec.history) return terms;
    const known = terms.length > 1 ? make.add(...terms) : terms[0]!;
    const has = linear({ ...fixed, useBias: false, name: HISTORY_LAYER });
    return [linear({ ...fixed, name: FALLBACK_LAYER }), make.multiply(known, has)];
  }
  const terms = outputs[target.kind]();
  const output =
    terms.length > 1 ? (layers.add({ name: 'output' }).apply(terms) as SymbolicTensor) : terms[0]!;
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
  if (spec.history) {
    const has = inputs.length + historyLayout(spec).has;
    setLinearWeights(
      tf,
      model,
      HISTORY_LAYER,
      planes.map((plane) => [plane === has ? 1 : 0]),
      [],
    );
  }
  const byInput = (weights: number[][]) => planes.map((plane) => weights.map((row) => row[plane]!));
  if (fallback) setLinearWeights(tf, model, FALLBACK_LAYER, byInput(fallback.weights), fallback.bias);
  if (linear) {
    // The fallback is always added.
    const rest = fallback ? difference(linear, fallback) : linear;
    setLinearWeights(tf, model, LINEAR_LAYER, byInput(rest.weights), rest.bias);
  }
  return model;
}

/** Makes a model that reads no history a linear one, and keeps its features, so that another training can start from them. */
export function serveLinear(tf: Tf, model: LayersModel, { weights, bias }: LinearModel): void {
  const byInput = weights[0]!.map((_, plane) => weights.map((row) => row[plane]!));
  setLinearWeights(tf, model, LINEAR_LAYER, byInput, bias);
  const [kernel] = model.getLayer(RESIDUAL_LAYER).getWeights();
  tf.tidy(() => model.getLayer(RESIDUAL_LAYER).setWeights([tf.zerosLike(kernel!)]));
}

const difference = (a: LinearModel, b: LinearModel): LinearModel => ({
  weights: a.weights.map((row, o) => row.map((weight, f) => weight - b.weights[o]![f]!)),
  bias: a.bias.map((value, o) => value - b.bias[o]!),
});

/** Sets the weights of a linear layer. `weights` are indexed by input, then by output. */
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

/** Graph under construction. */
interface Graph {
  x: SymbolicTensor;
  /** Feature maps for the skip connections of later `up` layers, the smallest last. */
  skips: SymbolicTensor[];
  attention?: SymbolicTensor;
}

/** Returns the output of a layer that is applied to the output of the previous one. */
function addLayer(
  make: LayerBuilder,
  graph: Graph,
  layer: Exclude<LayerSpec, { type: 'mix' }>,
): SymbolicTensor {
  const { layers } = make.tf;
  const { x } = graph;
  switch (layer.type) {
    case 'cell': {
      const y = make.conv(x, layer.filters, 3, { activation: 'relu' });
      return apply(layers.averagePooling2d({ poolSize: 2, ...make.uniqueName('pool') }), y);
    }
    case 'average':
      return apply(layers.globalAveragePooling2d({ trainable: false, ...make.uniqueName('average') }), x);
    case 'dense': {
      const { units, activation } = layer;
      const kernelInitializer = make.kernel();
      return apply(layers.dense({ units, activation, kernelInitializer, ...make.uniqueName('dense') }), x);
    }
    case 'block':
      return make.block(x, layer.filters);
    case 'down': {
      const skip = make.block(x, layer.filters);
      graph.skips.push(skip);
      return apply(layers.maxPooling2d({ poolSize: 2, ...make.uniqueName('pool') }), skip);
    }
    case 'up': {
      const options = { filters: layer.filters, kernelSize: 2, strides: 2, padding: 'same' as const };
      const kernelInitializer = make.kernel();
      const up = layers.conv2dTranspose({ ...options, kernelInitializer, ...make.uniqueName('up') });
      return make.block(make.concatenate(graph.skips.pop()!, apply(up, x)), layer.filters);
    }
    case 'conv':
      return make.relu(make.conv(x, layer.filters, 3, { useBias: false }));
    case 'residual':
      return make.relu(make.add(bottleneck(make, x), x));
    case 'attention':
      graph.attention = attentionMap(make, x);
      return x;
    case 'attentive':
      return make.relu(make.add(make.multiply(bottleneck(make, x), graph.attention!), x));
  }
}

/** Bottleneck without bias: convolution 1x1, ReLU, 3x3 with dilation 2, ReLU, 1x1. It keeps the number of filters of `x`. */
function bottleneck(make: LayerBuilder, x: SymbolicTensor): SymbolicTensor {
  const filters = x.shape.at(-1) as number;
  const first = make.conv(x, filters, 1, { useBias: false, activation: 'relu' });
  const dilated = make.conv(first, filters, 3, { useBias: false, activation: 'relu', dilationRate: 2 });
  return make.conv(dilated, filters, 1, { useBias: false });
}

const DISCRIMINATOR_FIRST_FILTERS = 32;
const DISCRIMINATOR_NEXT_FILTERS = [128, 256, 512];

/**
 * Builds the discriminator that distinguishes true cloud-free images from generated ones while a cloud-removal model is trained (figure 8
 * of the paper). PatchGAN (Isola et al. 2017), six convolutions: one of 4x4 with stride 2 for the cloudy image and one for the candidate,
 * three more of 4x4 with batch normalisation for both together, and one of 3x3. Its output are logits, one for each part of the image.
 */
export function buildDiscriminator(tf: Tf, bands: number, seed: number): LayersModel {
  const make = new LayerBuilder(tf, seed);
  const inputs = ['cloudy', 'candidate'].map((name) => tf.input({ shape: [null, null, bands], name }));
  const halves = inputs.map((input) =>
    make.leakyRelu(make.conv(input, DISCRIMINATOR_FIRST_FILTERS, 4, { strides: 2 })),
  );
  const features = DISCRIMINATOR_NEXT_FILTERS.reduce<SymbolicTensor>(
    (x, filters) => make.block(x, filters, 4, 2),
    make.concatenate(...halves),
  );
  const logits = make.conv(features, 1, 3, { name: 'output' });
  return tf.model({ inputs, outputs: logits, name: 'discriminator' });
}
