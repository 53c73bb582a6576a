/** Classifiers of spectra by dense layers over standardised values, and their files. Linear classifiers have one layer. */

import { damagedClassifier } from '../errors.js';
import type { ValueEncoding } from '../sums.js';
import { PANEL_PIXELS, type PanelMatrix, type PixelPanel } from './panel.js';

/** Computes weights (rows x columns, row by row) times its input, plus the bias. */
export interface DenseLayer {
  weights: Float64Array;
  bias: Float64Array;
}

/** Standardised value = (physical value - centre) / deviation, for each band. */
export interface Standardisation {
  centre: Float64Array;
  deviation: Float64Array;
}

/** Standardised values are clamped to this limit, so that damaged pixels do not dominate sums. */
const MAX_STANDARDISED_VALUE = 1e4;

export function standardiseValue(
  value: number,
  band: number,
  { centre, deviation }: Standardisation,
): number {
  const standardised = (value - centre[band]) / deviation[band];
  return Math.max(-MAX_STANDARDISED_VALUE, Math.min(MAX_STANDARDISED_VALUE, standardised));
}

/** Hidden layers are followed by tanh. The softmax of the last layer gives the probabilities of the classes. */
export interface DenseNetwork extends Standardisation {
  layers: DenseLayer[];
}

/** Values of each layer: bands, hidden layers, classes. */
export type Sizes = readonly number[];

/** Numbers of all weights and biases. */
export function countOf(sizes: Sizes): number {
  return sizes.slice(1).reduce((sum, rows, i) => sum + rows * (sizes[i] + 1), 0);
}

/** Views of the weights and biases in a vector, which has the weights and then the bias of each layer. */
export function layerViews(parameters: Float64Array, sizes: Sizes): DenseLayer[] {
  let at = 0;
  const take = (count: number) => {
    at += count;
    return parameters.subarray(at - count, at);
  };
  return sizes.slice(1).map((rows, i) => ({ weights: take(rows * sizes[i]), bias: take(rows) }));
}

/** Transposes a matrix of `rows` x n numbers, row by row. */
export function transposed(values: Float64Array, rows: number): Float64Array {
  const columns = values.length / rows;
  return values.map((_, at) => values[(at % rows) * columns + Math.floor(at / rows)]);
}

/** The layers for input that is centred but not divided by the deviation. */
export function centredLayers({ deviation, layers: [first, ...others] }: DenseNetwork): DenseLayer[] {
  const weights = first!.weights.map((value, at) => value / deviation[at % deviation.length]);
  return [{ weights, bias: first!.bias }, ...others];
}

/** Returns layers whose probabilities are less certain for a temperature above 1 (Guo et al. 2017). */
export function withTemperature(layers: DenseLayer[], temperature: number): DenseLayer[] {
  const { weights, bias } = layers.at(-1)!;
  const scaled = (values: Float64Array) => values.map((value) => value / temperature);
  return [...layers.slice(0, -1), { weights: scaled(weights), bias: scaled(bias) }];
}

type Plane = PixelPanel['pixels'];

/** The encoding of values that are stored as physical values. */
export const identityEncoding = (bands: number): ValueEncoding => ({
  scales: new Array<number>(bands).fill(1),
  offsets: new Array<number>(bands).fill(0),
});

export class PanelNetwork {
  /** The weights of each layer. The products of a matrix are the output of its layer. */
  readonly matrices: PanelMatrix[] = [];

  /** The pixels of the panel are the input of the first layer. */
  constructor(
    private readonly panel: PixelPanel,
    private readonly layers: readonly DenseLayer[],
  ) {
    let before: Plane = panel.pixels;
    for (const { weights, bias } of layers) {
      const matrix = panel.matrix(padRows(weights, weights.length / bias.length, before.rows), before.rows);
      this.matrices.push(matrix);
      before = matrix.out;
    }
  }

  /** Returns the values that a layer reads. */
  inputOf(layer: number): Plane {
    return layer === 0 ? this.panel.pixels : this.matrices[layer - 1].out;
  }

  /** Computes the values of the last layer: row r of pixel i is at r * 64 + i. */
  forward(): Float32Array | Float64Array {
    let values = this.panel.values(this.panel.pixels);
    for (const [l, { bias }] of this.layers.entries()) {
      values = this.panel.multiply(this.matrices[l], this.inputOf(l));
      const isHidden = l < this.layers.length - 1;
      for (let r = 0, at = 0; r < bias.length; r++)
        for (const end = at + PANEL_PIXELS; at < end; at++) {
          const value = values[at] + bias[r];
          values[at] = isHidden ? Math.tanh(value) : value;
        }
    }
    return values;
  }
}

/** Pads rows of `columns` numbers with zeros to `wanted` numbers. */
export function padRows(rows: Float64Array, columns: number, wanted: number): Float64Array {
  if (columns === wanted) return rows;
  const padded = new Float64Array((rows.length / columns) * wanted);
  for (const [at, value] of rows.entries())
    padded[Math.floor(at / columns) * wanted + (at % columns)] = value;
  return padded;
}

/** Writes the probabilities of a pixel from its values in the last layer. Returns the logarithm of the sum of the exponentials. */
export function softmax(
  values: ArrayLike<number>,
  pixel: number,
  classes: number,
  into: Float64Array,
  temperature = 1,
): number {
  let most = -Infinity;
  for (let r = 0; r < classes; r++) most = Math.max(most, values[r * PANEL_PIXELS + pixel] / temperature);
  let sum = 0;
  for (let r = 0; r < classes; r++) {
    into[r] = Math.exp(values[r * PANEL_PIXELS + pixel] / temperature - most);
    sum += into[r];
  }
  for (let r = 0; r < classes; r++) into[r] /= sum;
  return most + Math.log(sum);
}

/**
 * Returns a layers model of TensorFlow.js, as for all models: `model.json` and `weights.bin`. It reads physical values of the bands and
 * returns probabilities of the classes.
 */
export function saveClassifier({ centre, deviation, layers }: DenseNetwork): Record<string, Uint8Array> {
  const bands = centre.length;
  const norm = 'standardise';
  const names = layers.map((_, l) => (l === layers.length - 1 ? 'output' : `hidden_${l + 1}`));
  const layer = (class_name: string, name: string, config: object, input?: string) => ({
    class_name,
    name,
    config: { name, trainable: true, ...config },
    inbound_nodes: input === undefined ? [] : [[[input, 0, 0, {}]]],
  });
  const topology = {
    class_name: 'Model',
    config: {
      name: 'classifier',
      layers: [
        layer('InputLayer', 'input', {
          batch_input_shape: [null, bands],
          dtype: 'float32',
          sparse: false,
        }),
        layer(
          'BatchNormalization',
          norm,
          { axis: -1, momentum: 0.99, epsilon: 0, center: false, scale: false },
          'input',
        ),
        ...layers.map(({ bias }, l) =>
          layer(
            'Dense',
            names[l],
            {
              units: bias.length,
              activation: l === layers.length - 1 ? 'softmax' : 'tanh',
              use_bias: true,
            },
            l === 0 ? norm : names[l - 1],
          ),
        ),
      ],
      input_layers: [['input', 0, 0]],
      output_layers: [['output', 0, 0]],
    },
    keras_version: 'tfjs-layers',
    backend: 'tensor_flow.js',
  };
  const weights = [
    { name: `${norm}/moving_mean`, shape: [bands], values: centre },
    { name: `${norm}/moving_variance`, shape: [bands], values: deviation.map((value) => value ** 2) },
    ...layers.flatMap(({ weights, bias }, l) => [
      // Dense layers of TensorFlow have a column for each output.
      {
        name: `${names[l]}/kernel`,
        shape: [weights.length / bias.length, bias.length],
        values: transposed(weights, bias.length),
      },
      { name: `${names[l]}/bias`, shape: [bias.length], values: bias },
    ]),
  ];
  const json = {
    format: 'layers-model',
    generatedBy: 'tilewright',
    convertedBy: null,
    modelTopology: topology,
    weightsManifest: [
      {
        paths: ['weights.bin'],
        weights: weights.map(({ name, shape }) => ({ name, shape, dtype: 'float32' })),
      },
    ],
  };
  const values = Float32Array.from(weights.flatMap((one) => Array.from(one.values)));
  return {
    'model.json': Buffer.from(JSON.stringify(json)),
    'weights.bin': new Uint8Array(values.buffer),
  };
}

/** Parses the network of `weights.bin`. All numbers are float32 values. Throws TW_ANALYSIS_CLASSIFIER if the size does not match. */
export function parseNetwork(id: string, weights: Uint8Array, sizes: Sizes): DenseNetwork {
  const values = Float64Array.from(new Float32Array(Uint8Array.from(weights).buffer));
  const bands = sizes[0];
  const count = sizes.slice(1).reduce((sum, rows, l) => sum + rows * (sizes[l] + 1), 2 * bands);
  if (values.length !== count)
    throw damagedClassifier(id, `it has ${values.length} weights in place of ${count}`);
  const layers = layerViews(values.subarray(2 * bands), sizes).map(
    ({ weights, bias }): DenseLayer => ({
      weights: transposed(weights, weights.length / bias.length),
      bias,
    }),
  );
  const deviation = values.subarray(bands, 2 * bands).map(Math.sqrt);
  return { centre: values.subarray(0, bands), deviation, layers };
}
