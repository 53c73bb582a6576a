/** The convolutional networks that classify spectra: their training settings, and their layers. */
import type { LayersModel, SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { Standardisation } from '../methods/dense-network.js';

/** Convolutions along the bands of a pixel, and also over the pixels around it; the simplest first. */
export const NETS = ['cnn1d', 'resnet3d'] as const;
export type NetName = (typeof NETS)[number];

export const isNet = (name: string): name is NetName => (NETS as readonly string[]).includes(name);

interface NetSettings {
  /** Side of the square of input pixels around the classified pixel; an odd number. */
  side: number;
  /** Default number of passes over the labelled pixels. */
  epochs: number;
  /** The largest step of Adam. */
  rate: number;
}

export const NET_SETTINGS: Record<NetName, NetSettings> = {
  cnn1d: { side: 1, epochs: 30, rate: 3e-3 },
  resnet3d: { side: 5, epochs: 12, rate: 3e-3 },
};

/** Side of the square of input pixels of a classifier; 1 if it reads single pixels. */
export const patchSide = (classifier: string): number =>
  isNet(classifier) ? NET_SETTINGS[classifier].side : 1;

/** The shape of a network. Plain data. */
export interface NetShape {
  name: NetName;
  bands: number;
  classes: number;
}

/** Computes the probability of each class by a stored network. Plain data. */
export interface NetMethod {
  kind: 'net';
  side: number;
  classes: number;
  /** `model.json` and `weights.bin`. */
  files: Record<string, Uint8Array>;
}

export function netMethod(name: NetName, classes: number, files: Record<string, Uint8Array>): NetMethod {
  return { kind: 'net', side: NET_SETTINGS[name].side, classes, files };
}

/** Positions along the bands that the last layer distinguishes. */
const HEAD_POSITIONS = 7;
/** Features of a band in the residual network. */
const RESIDUAL_FEATURES = 8;
const STANDARDISE_LAYER = 'standardise';

type Config = Record<string, unknown>;
type Layer = LayersModel['layers'][number];
type Maker = (create: (config: never) => Layer, name: string, config: Config) => Apply;
type Apply = (...inputs: SymbolicTensor[]) => SymbolicTensor;

/** A network for standardised spectra. Its weights are not set. */
export interface Net {
  /** Maps inputs to the features of the last convolution. */
  features: LayersModel;
  /** Maps features to one value for each class, before softmax. */
  head: LayersModel;
  /** Layers with weights, in the order of their creation. */
  layers: Layer[];
}

export function buildNet(tf: Tf, shape: NetShape): Net {
  const layers = new Map<string, Layer>();
  const make = makerOf(layers);
  const input = tf.input({ shape: inputShape(shape) });
  const maps = GRAPHS[shape.name].features(tf, make, input, shape);
  const features = tf.model({ inputs: input, outputs: maps });
  const headInput = tf.input({ shape: maps.shape.slice(1) });
  const head = tf.model({
    inputs: headInput,
    outputs: GRAPHS[shape.name].head(tf, make, headInput, shape),
  });
  return { features, head, layers: weighted(layers) };
}

/** Builds a model that reads physical values and returns the probabilities of the classes. Dispose it when done. */
export function storedNet(
  tf: Tf,
  shape: NetShape,
  standard: Standardisation,
): { model: LayersModel; layers: Layer[] } {
  const layers = new Map<string, Layer>();
  const make = makerOf(layers);
  const input = tf.input({ shape: inputShape(shape), name: 'input' });
  const config = { name: STANDARDISE_LAYER, axis: -1, epsilon: 0, center: false, scale: false };
  const norm = tf.layers.batchNormalization(config);
  const maps = GRAPHS[shape.name].features(tf, make, norm.apply(input) as SymbolicTensor, shape);
  const values = GRAPHS[shape.name].head(tf, make, maps, shape);
  const outputs = make(tf.layers.activation, 'output', { activation: 'softmax' })(values);
  const model = tf.model({ inputs: input, outputs, name: 'classifier' });
  const { centre, deviation } = standard;
  const variance = deviation.map((value) => value ** 2);
  tf.tidy(() =>
    norm.setWeights([tf.tensor1d(Float32Array.from(centre)), tf.tensor1d(Float32Array.from(variance))]),
  );
  return { model, layers: weighted(layers) };
}

/** The mean of each band in the standardisation of a stored model. */
export function centreOf(model: LayersModel): Float32Array {
  return model.getLayer(STANDARDISE_LAYER).getWeights()[0].dataSync() as Float32Array;
}

function inputShape({ name, bands }: NetShape): number[] {
  const { side } = NET_SETTINGS[name];
  return side === 1 ? [bands] : [side, side, bands];
}

const weighted = (layers: Map<string, Layer>) =>
  [...layers.values()].filter(({ weights }) => weights.length > 0);

/** Returns a function that applies the layer of a name, which is created once. */
function makerOf(layers: Map<string, Layer>): Maker {
  return (create, name, config) =>
    (...inputs) => {
      const layer = layers.get(name) ?? create({ name, ...config } as never);
      layers.set(name, layer);
      return layer.apply(inputs.length === 1 ? inputs[0] : inputs) as SymbolicTensor;
    };
}

type GraphPart = (tf: Tf, make: Maker, x: SymbolicTensor, shape: NetShape) => SymbolicTensor;

/**
 * The networks as graphs of layers. The second axis of an image has the bands, the first the pixels of a patch. Two-dimensional
 * convolutions therefore suffice, which every engine and ONNX support.
 */
const GRAPHS: Record<NetName, { features: GraphPart; head: GraphPart }> = {
  cnn1d: {
    features: (tf, make, x, { bands }) => {
      const { conv2d, reshape } = tf.layers;
      const conv = (name: string, filters: number, step: number) =>
        make(conv2d, name, {
          filters,
          kernelSize: [1, 7],
          strides: [1, step],
          padding: 'same',
          activation: 'relu',
        });
      const image = make(reshape, 'bands', { targetShape: [1, bands, 1] })(x);
      return conv('conv3', 32, 2)(conv('conv2', 32, 2)(conv('conv1', 16, 1)(image)));
    },
    head: bandHead,
  },
  resnet3d: {
    features: (tf, make, x, { bands }) => {
      const { conv2d, reshape, permute, add, multiply, reLU, averagePooling2d } = tf.layers;
      const { side } = NET_SETTINGS.resnet3d;
      const positions = Math.ceil(bands / 4);
      const conv = (name: string, kernelSize: number[], change: Config = {}) =>
        make(conv2d, name, { filters: RESIDUAL_FEATURES, kernelSize, padding: 'same', ...change });
      const shaped = (name: string, ...targetShape: number[]) => make(reshape, name, { targetShape });
      // A separable three-dimensional convolution: along the bands, the columns and the rows of the patch.
      const block = (name: string, from: SymbolicTensor) => {
        let now = conv(`${name}_bands`, [1, 7], { activation: 'relu' })(from);
        for (const axis of ['rows', 'columns']) {
          const lines = shaped(`${name}_${axis}_lines`, side, side * positions, RESIDUAL_FEATURES)(now);
          const found = conv(`${name}_${axis}`, [3, 1])(lines);
          const grid = shaped(`${name}_${axis}_grid`, side, side, positions * RESIDUAL_FEATURES)(found);
          now = make(permute, `${name}_${axis}_turn`, { dims: [2, 1, 3] })(grid);
        }
        const back = shaped(`${name}_back`, side * side, positions, RESIDUAL_FEATURES)(now);
        return make(reLU, `${name}_relu`, {})(make(add, `${name}_add`, {})(from, back));
      };
      const image = shaped('bands', side * side, bands, 1)(x);
      const first = conv('conv1', [1, 7], { strides: [1, 4], activation: 'relu' })(image);
      const features = block('block2', block('block1', first));
      // Attention: a weight for each band, computed from the mean over all pixels of the patch.
      const pooled = make(averagePooling2d, 'attention_pool', { poolSize: [side * side, 1] })(features);
      const squeezed = conv('attention_bands', [1, 7], {
        filters: RESIDUAL_FEATURES / 2,
        activation: 'relu',
      })(pooled);
      const weights = conv('attention', [1, 1], { filters: 1, activation: 'sigmoid' })(squeezed);
      return make(multiply, 'attended', {})(features, weights);
    },
    head: (tf, make, x, shape) => {
      const kernelSize = [NET_SETTINGS.resnet3d.side ** 2, 1];
      const change = { filters: RESIDUAL_FEATURES, kernelSize, padding: 'valid', activation: 'relu' };
      return bandHead(tf, make, make(tf.layers.conv2d, 'ground', change)(x), shape);
    },
  },
};

/** Averages the features over a few parts of the spectrum, and computes a value for each class from all averages. */
function bandHead(tf: Tf, make: Maker, x: SymbolicTensor, { classes }: NetShape): SymbolicTensor {
  const width = Math.ceil(x.shape[2]! / HEAD_POSITIONS);
  const config = { poolSize: [1, width], strides: [1, width], padding: 'same' };
  const pooled = make(tf.layers.averagePooling2d, 'pool', config)(x);
  return classValues(tf, make, pooled, classes);
}

/** A dense layer, as a convolution that spans the entire image. */
function classValues(tf: Tf, make: Maker, x: SymbolicTensor, classes: number): SymbolicTensor {
  const kernelSize = x.shape.slice(1, 3);
  const values = make(tf.layers.conv2d, 'classes', { filters: classes, kernelSize, padding: 'valid' })(x);
  return make(tf.layers.globalAveragePooling2d as never, 'values', {})(values);
}
