/** Exports a model as an ONNX file, for programs that do not read tfjs models. */
import { onnxLayer, onnxWeights } from './errors.js';
import { type Attribute, OnnxGraph, type ValueInfo } from './onnx-graph.js';

/** Origin of a value: layer, index of its application, and index of the result of that application. */
type Origin = [layer: string, application: number, result: number, options?: object];

interface Layer {
  name: string;
  class_name: string;
  config: LayerConfig;
  inbound_nodes: Origin[][];
}

/** `model.json`, as tfjs writes it for a graph of layers. */
interface SavedModel {
  modelTopology: {
    config: { name: string; layers: Layer[]; input_layers: Origin[]; output_layers: Origin[] };
  };
  weightsManifest: { weights: { name: string; shape: number[]; dtype: string }[] }[];
}

/**
 * Returns the ONNX file (operator set 17) of a model that was saved as `model.json` and `weights.bin`. Inputs and outputs have the names of
 * their layers. Their axes are those of tfjs: (batch, row, column, channel) for images, (batch, channel) for lists of numbers. `about`: a
 * description for readers, written into the file. Throws TW_TRAIN_ONNX_LAYER, TW_TRAIN_ONNX_WEIGHTS.
 */
export function exportOnnx(modelJson: Uint8Array, weightsBin: Uint8Array, about: string): Buffer {
  const { modelTopology, weightsManifest }: SavedModel = JSON.parse(Buffer.from(modelJson).toString());
  const { name, layers, input_layers, output_layers } = modelTopology.config;
  const weights = weightsByLayer(
    weightsManifest.flatMap((group) => group.weights),
    weightsBin,
  );
  const graph = new OnnxGraph();
  const values = new Map<string, GraphValue>();
  const inputs: ValueInfo[] = [];
  for (const layer of layers) {
    const { name, class_name: kind, config, inbound_nodes } = layer;
    if (kind === 'InputLayer') {
      const { port, value } = addInput(graph, layer);
      inputs.push(port);
      values.set(name, value);
      continue;
    }
    if (inbound_nodes.length !== 1) throw onnxLayer(name, `${kind} applied ${inbound_nodes.length} times`);
    const given = inbound_nodes[0]!.map(([origin]) => values.get(origin)!);
    values.set(name, addLayer({ graph, name, kind, config, weights: weights.get(name) ?? new Map() }, given));
  }
  const order = new Map(input_layers.map(([layer], i) => [layer, i]));
  inputs.sort((a, b) => order.get(a.name)! - order.get(b.name)!);
  const outputs = output_layers.map(([layer]) => addOutput(graph, layer, values.get(layer)!));
  return graph.encode(name, inputs, outputs, about);
}

function addInput(
  graph: OnnxGraph,
  { name, config, class_name }: Layer,
): { port: ValueInfo; value: GraphValue } {
  const sizes = config.batch_input_shape!.slice(1);
  const channels = sizes.at(-1);
  if (typeof channels !== 'number' || ![1, 3].includes(sizes.length))
    throw onnxLayer(name, `${class_name} of the shape ${sizes}`);
  if (sizes.length === 1)
    return { port: { name, shape: ['batch', channels] }, value: { name, isNchw: false, channels } };
  const [rows, columns] = sizes;
  const port = { name, shape: ['batch', rows ?? 'height', columns ?? 'width', channels] };
  const image = graph.node('Transpose', `${name}/Transpose`, [name], { perm: [0, 3, 1, 2] });
  return { port, value: { name: image, isNchw: true, channels } };
}

function addOutput(graph: OnnxGraph, layer: string, { name, isNchw, channels }: GraphValue): ValueInfo {
  if (!isNchw) return { name: graph.node('Identity', layer, [name]), shape: ['batch', channels] };
  const image = graph.node('Transpose', layer, [name], { perm: [0, 2, 3, 1] });
  return { name: image, shape: ['batch', null, null, channels] };
}

/** Splits `weights.bin`, the consecutive float32 weights, by layer. Weight names are `<layer>/<weight>`. */
function weightsByLayer(
  list: { name: string; shape: number[]; dtype: string }[],
  bin: Uint8Array,
): Map<string, Map<string, Weight>> {
  const sizes = list.map(({ shape }) => shape.reduce((product, size) => product * size, 1));
  const bytes = 4 * sizes.reduce((sum, size) => sum + size, 0);
  if (bytes !== bin.length) throw onnxWeights(`it has ${bin.length} bytes instead of ${bytes}`);
  // A copy, because float32 views must be aligned to four bytes.
  const all = new Float32Array(Uint8Array.from(bin).buffer);
  const layers = new Map<string, Map<string, Weight>>();
  let offset = 0;
  for (const [i, { name, shape, dtype }] of list.entries()) {
    if (dtype !== 'float32') throw onnxWeights(`${name} is of type ${dtype}`);
    const [layer, weight] = name.split('/') as [string, string];
    const known = layers.get(layer) ?? new Map<string, Weight>();
    const values = all.subarray(offset, offset + sizes[i]!);
    offset += sizes[i]!;
    layers.set(layer, known.set(weight, { shape, values }));
  }
  return layers;
}

/** A value in the graph: an image, or one row of numbers for each example. */
interface GraphValue {
  name: string;
  isNchw: boolean;
  channels: number;
}

interface Weight {
  shape: number[];
  values: Float32Array;
}

/** A layer of `model.json` that is being converted. */
interface LayerContext {
  graph: OnnxGraph;
  name: string;
  kind: string;
  config: LayerConfig;
  /** By the name in the layer, such as `kernel` and `bias`. */
  weights: Map<string, Weight>;
}

type Pair = [rows: number, columns: number];

interface LayerConfig {
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
  /** Sizes of the axes after the batch; and the order of these axes, counted from 1. */
  target_shape?: number[];
  dims?: number[];
  epsilon?: number;
  alpha?: number;
  max_value?: number | null;
}

type Convert = (layer: LayerContext, inputs: GraphValue[]) => GraphValue;

/**
 * Convert tfjs layers to ONNX nodes. Images in the graph have the axes of ONNX: batch, channel, row, column; tfjs has the channels last.
 * Sizes, paddings and the order of weights follow https://onnx.ai/onnx/operators/ and Keras 2.
 */
const LAYER_CONVERTERS: Record<string, Convert> = {
  Conv2D: (layer, inputs) => {
    const kernel = transpose(weightOf(layer, 'kernel'), [3, 2, 0, 1]);
    return convolution(layer, imageOf(layer, inputs), kernel, {});
  },
  DepthwiseConv2D: (layer, inputs) => {
    const image = imageOf(layer, inputs);
    const { values, shape } = transpose(weightOf(layer, 'depthwise_kernel'), [2, 3, 0, 1]);
    const [channels, multiplier, ...sides] = shape as [number, number, ...Pair];
    const kernel = { shape: [channels * multiplier, 1, ...sides], values };
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
  BatchNormalization: batchNormalized,
  ReLU: (layer, [x]) => {
    if (typeof layer.config.max_value === 'number') throw unsupported(layer, 'with a maximum');
    return applied(layer, x!, 'Relu');
  },
  LeakyReLU: (layer, [x]) => applied(layer, x!, 'LeakyRelu', { alpha: { float: layer.config.alpha ?? 0.3 } }),
  Reshape: reshaped,
  Permute: (layer, inputs) => {
    const x = imageOf(layer, inputs);
    // ONNX axis of each tfjs axis: ONNX counts from 0 and has channels second; tfjs counts the axes after the batch from 1.
    const axes = [2, 3, 1];
    const [rows, columns, channels] = layer.config.dims!.map((axis) => axes[axis - 1]!);
    if (channels !== 1) throw unsupported(layer, 'of channels');
    return applied(layer, x, 'Transpose', { perm: [0, 1, rows!, columns!] });
  },
  Activation: (layer, [x]) => applyActivation(layer, x!),
  Add: (layer, inputs) => combined(layer, inputs, 'Add'),
  Multiply: (layer, inputs) => combined(layer, inputs, 'Mul'),
  Concatenate: (layer, inputs) => {
    const last = inputs[0]!.isNchw ? 3 : 1;
    if (![-1, last].includes(layer.config.axis ?? -1))
      throw unsupported(layer, 'along another axis than the last');
    const names = inputs.map((one) => one.name);
    const name = node(layer, 'Concat', names, { axis: 1 });
    return { ...inputs[0]!, name, channels: inputs.reduce((sum, { channels }) => sum + channels, 0) };
  },
  Cropping2D: (layer, inputs) => {
    const x = imageOf(layer, inputs);
    const [rows, columns] = layer.config.cropping!;
    // A negative end counts from the last value; the largest integer is the end itself.
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

/** Adds a layer that is applied to these values. Throws TW_TRAIN_ONNX_LAYER. */
function addLayer(layer: LayerContext, inputs: GraphValue[]): GraphValue {
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

/** Applies an operator to one value, of which it keeps the kind. */
function applied(
  layer: LayerContext,
  x: GraphValue,
  op: string,
  attributes: Record<string, Attribute> = {},
): GraphValue {
  return { ...x, name: node(layer, op, [x.name], attributes) };
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
  const padding = paddingOf(layer, kernel.shape.slice(2) as Pair, strides, dilations);
  const all = { ...attributes, strides, dilations, ...padding };
  return convolved(layer, 'Conv', x, kernel, kernel.shape[0]!, all);
}

function convolved(
  layer: LayerContext,
  op: string,
  x: GraphValue,
  kernel: Weight,
  channels: number,
  attributes: Record<string, Attribute>,
): GraphValue {
  const inputs = [x.name, constant(layer, 'kernel', kernel), ...optionalBias(layer)];
  return applyActivation(layer, { name: node(layer, op, inputs, attributes), isNchw: true, channels });
}

/** With stride 1 the padding is known; otherwise it depends on the size of the image. */
function paddingOf(
  layer: LayerContext,
  sides: Pair,
  strides: Pair,
  dilations: Pair,
): Record<string, Attribute> {
  if (layer.config.padding !== 'same') return {};
  if (strides.some((stride) => stride > 1)) {
    // Keras refuses the combination as well.
    if (dilations.some((one) => one > 1)) throw unsupported(layer, 'with strides and dilation');
    return { auto_pad: 'SAME_UPPER' };
  }
  return { pads: halved(sides.map((side, i) => (side - 1) * dilations[i]!)) };
}

/** Divides numbers of rows and columns: those before the image, then those after it. */
function halved(totals: number[]): number[] {
  return [...totals.map((total) => Math.floor(total / 2)), ...totals.map((total) => Math.ceil(total / 2))];
}

/** Keras enlarges the image by the stride; with `valid` padding it keeps the values beyond that size. */
function transposedConvolution(layer: LayerContext, inputs: GraphValue[]): GraphValue {
  const x = imageOf(layer, inputs);
  const kernel = transpose(weightOf(layer, 'kernel'), [3, 2, 0, 1]);
  const sides = kernel.shape.slice(2);
  const { strides = [1, 1], padding } = layer.config;
  return convolved(layer, 'ConvTranspose', x, kernel, kernel.shape[1]!, {
    strides,
    output_padding: sides.map((side, i) => Math.max(0, strides[i]! - side)),
    ...(padding === 'same' && { pads: halved(sides.map((side, i) => Math.max(0, side - strides[i]!))) }),
  });
}

function pooled(layer: LayerContext, inputs: GraphValue[], op: string): GraphValue {
  const x = imageOf(layer, inputs);
  const { pool_size: sides, strides, padding } = layer.config;
  const attributes = {
    kernel_shape: sides!,
    strides: strides!,
    ...(padding === 'same' && { auto_pad: 'SAME_UPPER' }),
  };
  return applied(layer, x, op, attributes);
}

function globallyPooled(layer: LayerContext, inputs: GraphValue[], op: string): GraphValue {
  const x = imageOf(layer, inputs);
  return { ...applied(layer, x, op, { axes: [2, 3], keepdims: 0 }), isNchw: false };
}

/** Reshapes to an image, in the value order of tfjs (channels last). */
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

/** Normalises with the moving averages of the training. */
function batchNormalized(layer: LayerContext, [x]: GraphValue[]): GraphValue {
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

/** Combines values; a single channel is broadcast. */
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
  return applied(layer, x, ...known);
}

/** Reorders the axes of row-major values, like `numpy.transpose`. */
function transpose({ values, shape }: Weight, order: number[]): Weight {
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((product, size) => product * size, 1));
  const moved = new Float32Array(values.length);
  const index = order.map(() => 0);
  for (let i = 0; i < moved.length; i++) {
    moved[i] = values[order.reduce((at, axis, k) => at + index[k]! * strides[axis]!, 0)]!;
    for (let k = order.length - 1; k >= 0 && ++index[k]! === shape[order[k]!]; k--) index[k] = 0;
  }
  return { shape: order.map((axis) => shape[axis]!), values: moved };
}
