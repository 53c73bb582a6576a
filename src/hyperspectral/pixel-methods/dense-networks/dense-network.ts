/** Classifiers of spectra by dense layers over standardised values. Linear classifiers have one layer. */

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
