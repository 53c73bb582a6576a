/** Gradients and scores of dense networks on labelled spectra. Runs in worker threads. */
import {
  countOf,
  type DenseLayer,
  identityEncoding,
  layerViews,
  PanelNetwork,
  padRows,
  type Sizes,
  softmax,
  transposed,
} from './methods/dense-network.js';
import { PANEL_PIXELS, PixelPanel } from './methods/panel.js';
import { type LabelledSpectra, loadSpectra } from './samples.js';

interface GradientTask {
  spectra: LabelledSpectra[];
  /** Table of the class of each code, counted from 0. */
  classOf: Uint8Array;
  sizes: Sizes;
  parameters: Float64Array;
  units: GradientUnits;
}

/** Powers of 2. */
export interface GradientUnits {
  loss: number;
  gradient: number;
}

/**
 * Sums over pixels, in integer multiples of the units of the task. Each panel of 64 pixels is rounded, so sums of panels are exact in every
 * order.
 */
export interface GradientSums {
  /** Sum of the cross entropy. */
  loss: number;
  gradient: Float64Array;
}

/** Unit of sums of scores. */
export const SCORE_UNIT = 2 ** -30;

export function gradientSums({ spectra, classOf, sizes, parameters, units }: GradientTask): GradientSums {
  const quanta = (value: number) => Math.round(value / units.gradient);
  const panel = new PixelPanel(identityEncoding(sizes[0]));
  const layers = layerViews(parameters, sizes);
  const network = new PanelNetwork(panel, layers);
  const sums = new Float64Array(countOf(sizes));
  const totals = layerViews(sums, sizes);
  const errors = network.matrices.map(({ out }) => panel.plane(out.rows));
  // Rows of errors times columns of inputs, with pixels in place of bands.
  const products = errors.map(({ rows }) => panel.emptyMatrix(rows, PANEL_PIXELS));
  const columns = panel.plane(PANEL_PIXELS);
  const back = layers.slice(1).map(({ weights, bias }, i) => {
    const { rows } = errors[i + 1];
    return panel.matrix(padRows(transposed(weights, bias.length), bias.length, rows), rows);
  });
  const classes = sizes.at(-1)!;
  const shares = new Float64Array(classes);
  let loss = 0;

  const computeErrors = (codes: Uint8Array, from: number, count: number) => {
    const values = network.forward();
    const last = panel.values(errors.at(-1)!);
    let own = 0;
    last.fill(0);
    for (let i = 0; i < count; i++) {
      const truth = classOf[codes[from + i]];
      own += softmax(values, i, classes, shares) - values[truth * PANEL_PIXELS + i];
      for (let r = 0; r < classes; r++) last[r * PANEL_PIXELS + i] = shares[r] - Number(r === truth);
    }
    loss += Math.round(own / units.loss);
  };
  const addGradient = (l: number) => {
    const { weights, bias } = totals[l];
    const error = panel.values(errors[l]);
    for (let r = 0; r < bias.length; r++) {
      let sum = 0;
      for (let at = r * PANEL_PIXELS; at < (r + 1) * PANEL_PIXELS; at++) sum += error[at];
      bias[r] += quanta(sum);
    }
    panel.fill(products[l], error);
    const input = panel.values(network.inputOf(l));
    const width = sizes[l];
    for (let first = 0; first < width; first += PANEL_PIXELS) {
      const count = Math.min(PANEL_PIXELS, width - first);
      const into = panel.values(columns);
      for (let c = 0; c < count; c++)
        for (let i = 0; i < PANEL_PIXELS; i++)
          into[i * PANEL_PIXELS + c] = input[(first + c) * PANEL_PIXELS + i];
      const out = panel.multiply(products[l], columns);
      for (let r = 0; r < bias.length; r++)
        for (let c = 0; c < count; c++) weights[r * width + first + c] += quanta(out[r * PANEL_PIXELS + c]);
    }
  };
  const propagateBack = (l: number) => {
    const passed = panel.multiply(back[l - 1], errors[l]);
    const output = panel.values(network.inputOf(l));
    const error = panel.values(errors[l - 1]);
    for (let at = 0; at < error.length; at++) error[at] = passed[at] * (1 - output[at] ** 2);
  };

  for (const { pixels, codes, values } of spectra)
    for (let from = 0, at = 0; from < pixels; from += PANEL_PIXELS, at += sizes[0] * PANEL_PIXELS) {
      loadSpectra(values, at, panel.values(panel.pixels) as Float32Array);
      computeErrors(codes, from, Math.min(PANEL_PIXELS, pixels - from));
      for (let l = layers.length - 1; l >= 0; l--) {
        addGradient(l);
        if (l > 0) propagateBack(l);
      }
    }
  return { loss, gradient: sums };
}

interface ScoreTask {
  spectra: LabelledSpectra[];
  classOf: Uint8Array;
  layers: DenseLayer[];
  temperatures: number[];
}

/** Scores of some pixels. All sums are integers, so adding them is exact. */
export interface ScoreSums {
  /** Confusion matrix: true classes by rows, predicted classes by columns. */
  table: number[];
  /** For each temperature: sum of the cross entropy, in units of `SCORE_UNIT`. */
  losses: number[];
  /** For each temperature: sum of the squared cross entropies, in units of `SQUARED_ENTROPY_UNIT`. */
  squares: number[];
  /**
   * For each temperature: bins by tenths of the largest probability with the number of pixels, the number of correct pixels, and the sum of
   * the probabilities in units of `SCORE_UNIT`.
   */
  reliability: { pixels: number; right: number; probability: number }[][];
}

export const RELIABILITY_BINS = 10;
/** Unit of sums of squared cross entropies, which only estimate errors. */
export const SQUARED_ENTROPY_UNIT = 2 ** -10;

export function noScores(classes: number, temperatures: number): ScoreSums {
  const bins = () =>
    Array.from({ length: RELIABILITY_BINS }, () => ({ pixels: 0, right: 0, probability: 0 }));
  return {
    table: new Array<number>(classes ** 2).fill(0),
    losses: new Array<number>(temperatures).fill(0),
    squares: new Array<number>(temperatures).fill(0),
    reliability: Array.from({ length: temperatures }, bins),
  };
}

export function addScores(to: ScoreSums, more: ScoreSums): void {
  for (const [at, count] of more.table.entries()) to.table[at] += count;
  for (const [t, loss] of more.losses.entries()) to.losses[t] += loss;
  for (const [t, square] of more.squares.entries()) to.squares[t] += square;
  for (const [t, bins] of more.reliability.entries())
    for (const [b, { pixels, right, probability }] of bins.entries()) {
      const bin = to.reliability[t][b];
      bin.pixels += pixels;
      bin.right += right;
      bin.probability += probability;
    }
}

export function scoreSums({ spectra, classOf, layers, temperatures }: ScoreTask): ScoreSums {
  const classes = layers.at(-1)!.bias.length;
  const bands = layers[0].weights.length / layers[0].bias.length;
  const panel = new PixelPanel(identityEncoding(bands));
  const network = new PanelNetwork(panel, layers);
  const sums = noScores(classes, temperatures.length);
  for (const { pixels, codes, values } of spectra)
    for (let from = 0; from < pixels; from += PANEL_PIXELS) {
      loadSpectra(values, from * bands, panel.values(panel.pixels) as Float32Array);
      const labels = codes.subarray(from, Math.min(pixels, from + PANEL_PIXELS));
      const truths = Array.from(labels, (code) => classOf[code]);
      addPanelScores(sums, network.forward(), truths, temperatures);
    }
  return sums;
}

/** Adds pixels whose values for class r are at r * 64 + i. `truths`: the true classes. */
export function addPanelScores(
  sums: ScoreSums,
  scores: ArrayLike<number>,
  truths: readonly number[],
  temperatures: readonly number[],
): void {
  const classes = Math.sqrt(sums.table.length);
  const shares = new Float64Array(classes);
  for (const [i, truth] of truths.entries()) {
    let best = 0;
    for (let r = 1; r < classes; r++)
      if (scores[r * PANEL_PIXELS + i] > scores[best * PANEL_PIXELS + i]) best = r;
    sums.table[truth * classes + best]++;
    for (const [t, temperature] of temperatures.entries()) {
      const logarithm = softmax(scores, i, classes, shares, temperature);
      const loss = logarithm - scores[truth * PANEL_PIXELS + i] / temperature;
      sums.losses[t] += Math.round(loss / SCORE_UNIT);
      sums.squares[t] += Math.round(loss ** 2 / SQUARED_ENTROPY_UNIT);
      const tenth = Math.min(RELIABILITY_BINS - 1, Math.floor(shares[best] * RELIABILITY_BINS));
      const bin = sums.reliability[t][tenth];
      bin.pixels++;
      bin.right += Number(best === truth);
      bin.probability += Math.round(shares[best] / SCORE_UNIT);
    }
  }
}
