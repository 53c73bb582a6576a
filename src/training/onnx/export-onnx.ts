/** Exports a model as an ONNX file, for programs that do not read tfjs models. */
import { onnxLayer, onnxWeights } from '../errors.js';
import { OnnxGraph, type ValueInfo } from './onnx-graph.js';
import { addLayer, type GraphValue, type LayerConfig, type Weight } from './onnx-layer-converters.js';

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
