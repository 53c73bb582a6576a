/**
 * The squared Mahalanobis distance of each pixel from the pixels around it (RX of Reed and Yu 1990 with a local background), in the space
 * of some components. Runs in worker threads.
 *
 * The sums over a window are updated from those of the previous window, so the time per pixel depends on the number of components and not
 * on the size of the window.
 */

import { eachBlockWithNeighbours, type Neighbour, type SpectrumFile } from '../blocks.js';
import { choleskyFactor } from '../linear-algebra.js';
import { PANEL_PIXELS, type PanelMatrix, PixelPanel } from './panel.js';

/** Plain data. Windows are squares around the pixel; their sides are odd numbers of pixels. */
export interface LocalRx {
  kind: 'local-distance';
  /** Components x bands. */
  weights: Float64Array;
  centre: Float64Array;
  /** The background is the outer window without the inner window. */
  outer: number;
  inner: number;
}

/** With fewer pixels per component, the inverse covariance is too uncertain (Reed, Mallett and Brennan 1974). */
export const MIN_PIXELS_PER_COMPONENT = 2;
/** Smaller shares of a sum of squares are rounding errors of the float32 scores. */
const SUM_EPSILON = 1e-12;

/**
 * Returns one number for each pixel of the tile, row by row. It is NaN if the pixel has no data, its background has fewer than 2 pixels per
 * component, or the covariance of the background has no inverse. Throws TW_IMAGERY_TILE_FILE.
 */
export function localRxDistances(
  file: SpectrumFile,
  around: readonly Neighbour[],
  method: LocalRx,
): Float32Array {
  const { width, height } = file;
  const reach = (method.outer - 1) / 2;
  const guard = (method.inner - 1) / 2;
  const scores = scoresOf(file, around, method, reach);
  const distance = distanceOf(scores);
  const [outer, inner] = [new WindowSums(scores, reach), new WindowSums(scores, guard)];
  const values = new Float32Array(width * height).fill(NaN);
  for (let row = 0; row < height; row++) {
    outer.toRow(row + reach);
    inner.toRow(row + reach);
    for (let column = 0; column < width; column++) {
      outer.toColumn(column + reach);
      inner.toColumn(column + reach);
      const at = (row + reach) * scores.width + column + reach;
      if (scores.has[at] === 1) values[row * width + column] = distance(outer.total, inner.total, at);
    }
  }
  return values;
}

/** Scores of the pixels of a tile, widened by the reach of the windows. */
interface Scores {
  width: number;
  height: number;
  /** Number of components. */
  size: number;
  /** Component k of pixel i is `values[i * size + k]`. */
  values: Float32Array;
  /** 1 for pixels that are clear and have data in every band. */
  has: Uint8Array;
}

function scoresOf(
  file: SpectrumFile,
  around: readonly Neighbour[],
  { weights, centre }: LocalRx,
  reach: number,
): Scores {
  const size = weights.length / centre.length;
  const [width, height] = [file.width + 2 * reach, file.height + 2 * reach];
  const values = new Float32Array(width * height * size);
  const has = new Uint8Array(width * height);
  let known: { file: SpectrumFile; panel: PixelPanel; matrix: PanelMatrix } | undefined;
  eachBlockWithNeighbours(file, around, { reach }, ({ bands, indexes, file: one, positionsOf }) => {
    if (known?.file !== one) {
      const panel = new PixelPanel(one, centre, 8);
      known = { file: one, panel, matrix: panel.matrix(weights, centre.length) };
    }
    const { panel, matrix } = known;
    for (let from = 0; from < indexes.length; from += PANEL_PIXELS) {
      const count = panel.load(bands, indexes, from);
      const products = panel.multiply(matrix, panel.pixels);
      for (let i = 0; i < count; i++)
        for (const at of positionsOf(indexes[from + i])) {
          has[at] = 1;
          for (let k = 0; k < size; k++) values[at * size + k] = products[k * PANEL_PIXELS + i];
        }
    }
  });
  return { width, height, size, values, has };
}

/**
 * Sums over a square window of scores that moves from north to south and in each row from west to east: the number of pixels, the sums of
 * components, and the sums of products of components i <= j, row by row.
 *
 * Invariant: `columns` has the sums over the rows of the window for each column, and `total` their sum over its columns. Positions beyond
 * the scores count as empty.
 */
class WindowSums {
  readonly total: Float64Array;
  private readonly columns: Float64Array;
  /** The rows that `columns` covers, and the columns that `total` covers: from the first to before the second. */
  private rows: [from: number, to: number] = [0, 0];
  private across: [from: number, to: number] = [0, 0];

  constructor(
    private readonly scores: Scores,
    private readonly reach: number,
  ) {
    this.total = new Float64Array(1 + scores.size + (scores.size * (scores.size + 1)) / 2);
    this.columns = new Float64Array(scores.width * this.total.length);
  }

  /** Moves the centre to this row, before its first column. */
  toRow(row: number): void {
    const first = Math.max(0, row - this.reach);
    const end = Math.min(this.scores.height, row + this.reach + 1);
    while (this.rows[1] < end) this.addRow(this.rows[1]++, 1);
    while (this.rows[0] < first) this.addRow(this.rows[0]++, -1);
    this.total.fill(0);
    this.across = [0, 0];
  }

  toColumn(column: number): void {
    const first = Math.max(0, column - this.reach);
    const end = Math.min(this.scores.width, column + this.reach + 1);
    while (this.across[1] < end) this.addColumn(this.across[1]++, 1);
    while (this.across[0] < first) this.addColumn(this.across[0]++, -1);
  }

  private addColumn(column: number, sign: number): void {
    const { total, columns } = this;
    const { length } = total;
    for (let k = 0, at = column * length; k < length; k++, at++) total[k] += sign * columns[at];
  }

  private addRow(row: number, sign: number): void {
    const columns = this.columns;
    const { length } = this.total;
    const { width, size, values, has } = this.scores;
    for (let column = 0; column < width; column++) {
      const pixel = row * width + column;
      if (has[pixel] === 0) continue;
      let to = column * length;
      columns[to++] += sign;
      const first = pixel * size;
      for (let k = 0; k < size; k++) columns[to++] += sign * values[first + k];
      for (let i = 0; i < size; i++) {
        const value = sign * values[first + i];
        for (let j = i; j < size; j++) columns[to++] += value * values[first + j];
      }
    }
  }
}

/** Returns a function for the distance of pixel `at` from its background, the sums of the outer window minus those of the inner one. */
function distanceOf({
  size,
  values,
}: Scores): (outer: Float64Array, inner: Float64Array, at: number) => number {
  const mean = new Float64Array(size);
  const white = new Float64Array(size);
  const covariance = new Float64Array(size * size);
  const lower = new Float64Array(size * size);
  return (outer, inner, at) => {
    const pixels = outer[0] - inner[0];
    if (pixels < MIN_PIXELS_PER_COMPONENT * size) return NaN;
    for (let k = 0; k < size; k++) mean[k] = (outer[k + 1] - inner[k + 1]) / pixels;
    for (let i = 0, from = size + 1; i < size; i++)
      for (let j = i; j < size; j++, from++) {
        const products = outer[from] - inner[from];
        const scatter = products - pixels * mean[i] * mean[j];
        if (i === j && scatter <= SUM_EPSILON * products) return NaN;
        covariance[j * size + i] = scatter / (pixels - 1);
      }
    if (!choleskyFactor(covariance, size, { lower })) return NaN;
    let square = 0;
    for (let i = 0; i < size; i++) {
      let rest = values[at * size + i] - mean[i];
      for (let k = 0; k < i; k++) rest -= lower[i * size + k] * white[k];
      white[i] = rest / lower[i * size + i];
      square += white[i] ** 2;
    }
    return square;
  };
}
