/**
 * Layers of tfjs as nodes of ONNX. Within the graph images are batch, channel, row, column, as ONNX has them; tfjs has the channels
 * last. Sizes, paddings and the order of weights are those of https://onnx.ai/onnx/operators/ and of Keras 2.
 */
import { onnxLayer } from '../errors.js';
import type { Attribute, OnnxGraph } from './onnx-graph.js';

/** A result in the graph: an image, or one row of numbers an example. */
export interface GraphValue {
  name: string;
  isNchw: boolean;
  channels: number;
}

export interface Weight {
  shape: number[];
  values: Float32Array;
}

/** A layer, as `model.json` describes it, on its way into the graph. */
export interface LayerContext {
  graph: OnnxGraph;
  name: string;
  kind: string;
  config: LayerConfig;
  /** By their names in the layer: `kernel`, `bias`. */
  weights: Map<string, Weight>;
}

type Pair = [rows: number, columns: number];

export interface LayerConfig {
  batch_input_shape?: (number | null)[];
  data_format?: string;
  activation?: string;
  padding?: 'same' | 'valid' | [top: Pair, left: Pair];
  kernel_size?: Pair;
  pool_size?: Pair;
  strides?: Pair;
  dilation_rate?: Pair;
  cropping?: [Pair, Pair];
  axis?: number;
  /** Sizes after the batch, and the order of such axes from 1. */
  target_shape?: number[];
  dims?: number[];
  epsilon?: number;
  alpha?: number;
  max_value?: number | null;
}

type Convert = (layer: LayerContext, inputs: GraphValue[]) => GraphValue;

const LAYER_CONVERTERS: Record<string, Convert> = {
  Conv2D: (layer, inputs) => {
    const { values, shape } = weightOf(layer, 'kernel');
    const kernel = {
      shape: [shape[3]!, shape[2]!, shape[0]!, shape[1]!],
      values: transpose(values, shape, [3, 2, 0, 1]),
    };
    return convolution(layer, imageOf(layer, inputs), kernel, {});
  },
  DepthwiseConv2D: (layer, inputs) => {
    const image = imageOf(layer, inputs);
    const { values, shape } = weightOf(layer, 'depthwise_kernel');
    const filters = shape[2]! * shape[3]!;
    const kernel = {
      shape: [filters, 1, shape[0]!, shape[1]!],
      values: transpose(values, shape, [2, 3, 0, 1]),
    };
    return convolution(layer, image, kernel, { group: image.channels });
  },
  Conv2DTranspose: transposedConvolution,
  Dense: (layer, [x]) => {
    if (x!.isNchw) throw unsupported(layer, 'of an image');
    const kernel = weightOf(layer, 'kernel');
    const inputs = [x!.name, constant(layer, 'kernel', kernel), ...optionalBias(layer)];
    return applyActivation(layer, { ...x!, name: node(layer, 'Gemm', inputs), channels: kernel.shape[1]! });
  },
  AveragePooling2D: (layer, inputs) => pooled(layer, inputs, 'AveragePool'),
  MaxPooling2D: (layer, inputs) => pooled(layer, inputs, 'MaxPool'),
  GlobalAveragePooling2D: (layer, inputs) => globallyPooled(layer, inputs, 'ReduceMean'),
  GlobalMaxPooling2D: (layer, inputs) => globallyPooled(layer, inputs, 'ReduceMax'),
  BatchNormalization: normalized,
  ReLU: (layer, [x]) => {
    if (typeof layer.config.max_value === 'number') throw unsupported(layer, 'with a maximum');
    return { ...x!, name: node(layer, 'Relu', [x!.name]) };
  },
  LeakyReLU: (layer, [x]) => {
    const alpha = { float: layer.config.alpha ?? 0.3 };
    return { ...x!, name: node(layer, 'LeakyRelu', [x!.name], { alpha }) };
  },
  Reshape: reshaped,
  Permute: (layer, inputs) => {
    const x = imageOf(layer, inputs);
    // ONNX counts axes from 0 and has channels second; TensorFlow.js counts these from 1.
    const axes = [2, 3, 1];
    const [rows, columns, channels] = layer.config.dims!.map((axis) => axes[axis - 1]!);
    if (channels !== 1) throw unsupported(layer, 'of channels');
    return { ...x, name: node(layer, 'Transpose', [x.name], { perm: [0, 1, rows!, columns!] }) };
  },
  Activation: (layer, [x]) => applyActivation(layer, x!),
  Add: (layer, inputs) => combined(layer, inputs, 'Add'),
  Multiply: (layer, inputs) => combined(layer, inputs, 'Mul'),
  Concatenate: (layer, inputs) => {
    const last = inputs[0]!.isNchw ? 3 : 1;
    if (![-1, last].includes(layer.config.axis ?? -1))
      throw unsupported(layer, 'along another axis than the last');
    const name = node(
      layer,
      'Concat',
      inputs.map((one) => one.name),
      { axis: 1 },
    );
    return { ...inputs[0]!, name, channels: inputs.reduce((sum, { channels }) => sum + channels, 0) };
  },
  Cropping2D: (layer, inputs) => {
    const x = imageOf(layer, inputs);
    const [rows, columns] = layer.config.cropping!;
    // An end before the last is counted from there; the largest number stands for the end itself.
    const ends = [rows[1], columns[1]].map((cut) => (cut === 0 ? 2n ** 63n - 1n : -BigInt(cut)));
    const sizes = { starts: [rows[0], columns[0]], ends, axes: [2, 3] };
    const given = Object.entries(sizes).map(([name, values]) => sizesOf(layer, name, values));
    return { ...x, name: node(layer, 'Slice', [x.name, ...given]) };
  },
  ZeroPadding2D: (layer, inputs) => {
    const x = imageOf(layer, inputs);
    const [[top, bottom], [left, right]] = layer.config.padding as [Pair, Pair];
    const pads = sizesOf(layer, 'pads', [0, 0, top, left, 0, 0, bottom, right]);
    return { ...x, name: node(layer, 'Pad', [x.name, pads]) };
  },
};

/** Adds a layer that is applied to some values. Throws TW_TRAIN_ONNX_LAYER. */
export function addLayer(layer: LayerContext, inputs: GraphValue[]): GraphValue {
  const convert = Object.hasOwn(LAYER_CONVERTERS, layer.kind) ? LAYER_CONVERTERS[layer.kind] : undefined;
  if (!convert || inputs.some(({ isNchw }) => isNchw !== inputs[0]!.isNchw)) throw unsupported(layer);
  if ((layer.config.data_format ?? 'channels_last') !== 'channels_last')
    throw unsupported(layer, 'with the channels first');
  return convert(layer, inputs);
}

function unsupported({ name, kind }: LayerContext, how = ''): Error {
  return onnxLayer(name, how === '' ? kind : `${kind} ${how}`);
}

function node(
  { graph, name }: LayerContext,
  op: string,
  inputs: string[],
  attributes: Record<string, Attribute> = {},
): string {
  return graph.node(op, `${name}/${op}`, inputs, attributes);
}

function imageOf(layer: LayerContext, [x]: GraphValue[]): GraphValue {
  if (!x!.isNchw) throw unsupported(layer, 'of an input that is not an image');
  return x!;
}

function weightOf(layer: LayerContext, kind: string): Weight {
  const weight = layer.weights.get(kind);
  if (!weight) throw unsupported(layer, `without ${kind}`);
  return weight;
}

function constant({ graph, name }: LayerContext, kind: string, { shape, values }: Weight): string {
  return graph.tensor(`${name}/${kind}`, shape, values);
}

function optionalBias(layer: LayerContext): string[] {
  const bias = layer.weights.get('bias');
  return bias ? [constant(layer, 'bias', bias)] : [];
}

function sizesOf({ graph, name }: LayerContext, kind: string, values: (number | bigint)[]): string {
  return graph.tensor(`${name}/${kind}`, [values.length], BigInt64Array.from(values, BigInt));
}

function convolution(
  layer: LayerContext,
  x: GraphValue,
  kernel: Weight,
  attributes: Record<string, Attribute>,
): GraphValue {
  const { strides = [1, 1], dilation_rate: dilations = [1, 1] } = layer.config;
  const sides = kernel.shape.slice(2) as Pair;
  const name = node(layer, 'Conv', [x.name, constant(layer, 'kernel', kernel), ...optionalBias(layer)], {
    ...attributes,
    strides,
    dilations,
    ...paddingOf(layer, sides, strides, dilations),
  });
  return applyActivation(layer, { name, isNchw: true, channels: kernel.shape[0]! });
}

/** With a stride of one the padding is known; else it hangs on the size of the image. */
function paddingOf(
  layer: LayerContext,
  sides: Pair,
  strides: Pair,
  dilations: Pair,
): Record<string, Attribute> {
  if (layer.config.padding !== 'same') return {};
  if (strides.some((stride) => stride > 1)) {
    // Both at once is refused by Keras as well.
    if (dilations.some((one) => one > 1)) throw unsupported(layer, 'with strides and dilation');
    return { auto_pad: 'SAME_UPPER' };
  }
  const all = sides.map((side, i) => (side - 1) * dilations[i]!);
  const before = all.map((total) => Math.floor(total / 2));
  return { pads: [...before, ...all.map((total, i) => total - before[i]!)] };
}

/** Keras makes the result as many times larger as the stride, or with `valid` padding lets what sticks out stand. */
function transposedConvolution(layer: LayerContext, inputs: GraphValue[]): GraphValue {
  const x = imageOf(layer, inputs);
  const { values, shape } = weightOf(layer, 'kernel');
  const sides = shape.slice(0, 2);
  const { strides = [1, 1], padding } = layer.config;
  const excess = sides.map((side, i) => Math.max(0, side - strides[i]!));
  const before = excess.map((total) => Math.floor(total / 2));
  const kernel = { shape: [shape[3]!, shape[2]!, ...sides], values: transpose(values, shape, [3, 2, 0, 1]) };
  const name = node(
    layer,
    'ConvTranspose',
    [x.name, constant(layer, 'kernel', kernel), ...optionalBias(layer)],
    {
      strides,
      output_padding: sides.map((side, i) => Math.max(0, strides[i]! - side)),
      ...(padding === 'same' && { pads: [...before, ...excess.map((total, i) => total - before[i]!)] }),
    },
  );
  return applyActivation(layer, { name, isNchw: true, channels: shape[2]! });
}

function pooled(layer: LayerContext, inputs: GraphValue[], op: string): GraphValue {
  const x = imageOf(layer, inputs);
  const { pool_size: sides, strides, padding } = layer.config;
  const attributes = {
    kernel_shape: sides!,
    strides: strides!,
    ...(padding === 'same' && { auto_pad: 'SAME_UPPER' }),
  };
  return { ...x, name: node(layer, op, [x.name], attributes) };
}

function globallyPooled(layer: LayerContext, inputs: GraphValue[], op: string): GraphValue {
  const x = imageOf(layer, inputs);
  return { ...x, isNchw: false, name: node(layer, op, [x.name], { axes: [2, 3], keepdims: 0 }) };
}

/** The same numbers in the order of tfjs, with the channels last, as an image. */
function reshaped(layer: LayerContext, [x]: GraphValue[]): GraphValue {
  const sizes = layer.config.target_shape!;
  if (sizes.length !== 3 || sizes.some((size) => !(size > 0)))
    throw unsupported(layer, 'to a shape other than an image');
  const last = x!.isNchw ? node(layer, 'Transpose', [x!.name], { perm: [0, 2, 3, 1] }) : x!.name;
  const shape = sizesOf(layer, 'shape', [-1, ...sizes]);
  const name = layer.graph.node('Reshape', `${layer.name}/Reshape`, [last, shape]);
  const first = layer.graph.node('Transpose', `${layer.name}/Image`, [name], { perm: [0, 3, 1, 2] });
  return { name: first, isNchw: true, channels: sizes[2]! };
}

/** By the averages of the training. */
function normalized(layer: LayerContext, [x]: GraphValue[]): GraphValue {
  const { axis = -1, epsilon = 1e-3 } = layer.config;
  if (![-1, x!.isNchw ? 3 : 1].includes(axis)) throw unsupported(layer, 'along another axis than the last');
  const filled = (value: number): Weight => ({
    shape: [x!.channels],
    values: new Float32Array(x!.channels).fill(value),
  });
  const weights = {
    gamma: layer.weights.get('gamma') ?? filled(1),
    beta: layer.weights.get('beta') ?? filled(0),
    moving_mean: weightOf(layer, 'moving_mean'),
    moving_variance: weightOf(layer, 'moving_variance'),
  };
  const given = Object.entries(weights).map(([kind, weight]) => constant(layer, kind, weight));
  const name = node(layer, 'BatchNormalization', [x!.name, ...given], { epsilon: { float: epsilon } });
  return { ...x!, name };
}

/** Values of fewer channels are taken for each of the others'. */
function combined(layer: LayerContext, inputs: GraphValue[], op: string): GraphValue {
  const name = inputs.map((one) => one.name).reduce((left, right) => node(layer, op, [left, right]));
  return { ...inputs[0]!, name, channels: Math.max(...inputs.map(({ channels }) => channels)) };
}

const ACTIVATIONS: Record<string, [op: string, attributes?: Record<string, Attribute>]> = {
  relu: ['Relu'],
  sigmoid: ['Sigmoid'],
  tanh: ['Tanh'],
  // Channels are the second axis.
  softmax: ['Softmax', { axis: 1 }],
};

function applyActivation(layer: LayerContext, x: GraphValue): GraphValue {
  const { activation = 'linear' } = layer.config;
  if (activation === 'linear') return x;
  const known = ACTIVATIONS[activation];
  if (!known) throw unsupported(layer, `with the activation ${activation}`);
  const [op, attributes] = known;
  return { ...x, name: node(layer, op, [x.name], attributes) };
}

/** Values in row-major order with their axes in another order, as `numpy.transpose` has them. */
function transpose(values: Float32Array, shape: number[], order: number[]): Float32Array {
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((product, size) => product * size, 1));
  const moved = new Float32Array(values.length);
  const index = order.map(() => 0);
  for (let i = 0; i < moved.length; i++) {
    moved[i] = values[order.reduce((at, axis, k) => at + index[k]! * strides[axis]!, 0)]!;
    for (let k = order.length - 1; k >= 0 && ++index[k]! === shape[order[k]!]; k--) index[k] = 0;
  }
  return moved;
}
