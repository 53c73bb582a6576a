/** Evaluates the layers of a network on a panel of 64 pixels. */

import type { ValueEncoding } from '../../reproducible-sums/index.js';
import { PANEL_PIXELS, type PanelMatrix, type PixelPanel } from '../pixel-method-panel.js';
import type { DenseLayer } from './dense-network.js';

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
