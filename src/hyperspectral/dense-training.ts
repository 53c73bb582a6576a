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
  /** 1 for each class whose pixels are scored. */
  scored: Uint8Array;
}

/** Temperatures that are compared. */
export const TEMPERATURES = Array.from({ length: 17 }, (_, i) => 2 ** ((i - 4) / 4));
/** Index of the temperature 1. */
export const NO_TEMPERATURE = TEMPERATURES.indexOf(1);

/** Scores of the pixels of a square. All sums are integers, so adding them is exact. */
export interface SquareScores {
  /** Pixels by true class * number of classes + predicted class. */
  table: Map<number, number>;
  /** For each temperature: sum of the cross entropy, in units of `SCORE_UNIT`. */
  losses: Float64Array;
}

/** Number of pixels, number of correct pixels, and the sum of the largest probabilities in units of `SCORE_UNIT`. */
export interface ReliabilityBin {
  pixels: number;
  right: number;
  probability: number;
}

export interface ScoreSums {
  /** By the number of the square. */
  squares: Map<number, SquareScores>;
  /** For each temperature: bins by tenths of the largest probability. */
  reliability: ReliabilityBin[][];
}

export const RELIABILITY_BINS = 10;

export function noScores(): ScoreSums {
  const bins = () =>
    Array.from({ length: RELIABILITY_BINS }, () => ({ pixels: 0, right: 0, probability: 0 }));
  return { squares: new Map(), reliability: TEMPERATURES.map(bins) };
}

function squareIn({ squares }: ScoreSums, square: number): SquareScores {
  const found = squares.get(square) ?? { table: new Map(), losses: new Float64Array(TEMPERATURES.length) };
  squares.set(square, found);
  return found;
}

export function addScores(to: ScoreSums, more: ScoreSums): void {
  for (const [square, { table, losses }] of more.squares) {
    const own = squareIn(to, square);
    for (const [at, count] of table) own.table.set(at, (own.table.get(at) ?? 0) + count);
    for (const [t, loss] of losses.entries()) own.losses[t] += loss;
  }
  addReliability(to.reliability, more.reliability);
}

export function addReliability(to: ReliabilityBin[][], more: readonly (readonly ReliabilityBin[])[]): void {
  for (const [t, bins] of more.entries())
    for (const [b, { pixels, right, probability }] of bins.entries()) {
      const bin = to[t][b];
      bin.pixels += pixels;
      bin.right += right;
      bin.probability += probability;
    }
}

export function scoreSums({ spectra, classOf, layers, scored }: ScoreTask): ScoreSums {
  const bands = layers[0].weights.length / layers[0].bias.length;
  const panel = new PixelPanel(identityEncoding(bands));
  const network = new PanelNetwork(panel, layers);
  const sums = noScores();
  for (const { pixels, codes, squares, values } of spectra)
    for (let from = 0; from < pixels; from += PANEL_PIXELS) {
      loadSpectra(values, from * bands, panel.values(panel.pixels) as Float32Array);
      const to = Math.min(pixels, from + PANEL_PIXELS);
      const truths = Array.from(codes.subarray(from, to), (code) => classOf[code]);
      addPanelScores(sums, network.forward(), { truths, squares: squares.subarray(from, to), scored });
    }
  return sums;
}

/** Adds pixels whose values for class r are at r * 64 + i. `truths`: the true classes. */
export function addPanelScores(
  sums: ScoreSums,
  scores: ArrayLike<number>,
  { truths, squares, scored }: { truths: readonly number[]; squares: ArrayLike<number>; scored: Uint8Array },
): void {
  const classes = scored.length;
  const shares = new Float64Array(classes);
  for (const [i, truth] of truths.entries()) {
    if (scored[truth] === 0) continue;
    let best = 0;
    for (let r = 1; r < classes; r++)
      if (scores[r * PANEL_PIXELS + i] > scores[best * PANEL_PIXELS + i]) best = r;
    const { table, losses } = squareIn(sums, squares[i]);
    const at = truth * classes + best;
    table.set(at, (table.get(at) ?? 0) + 1);
    for (const [t, temperature] of TEMPERATURES.entries()) {
      const logarithm = softmax(scores, i, classes, shares, temperature);
      losses[t] += Math.round((logarithm - scores[truth * PANEL_PIXELS + i] / temperature) / SCORE_UNIT);
      const tenth = Math.min(RELIABILITY_BINS - 1, Math.floor(shares[best] * RELIABILITY_BINS));
      const bin = sums.reliability[t][tenth];
      bin.pixels++;
      bin.right += Number(best === truth);
      bin.probability += Math.round(shares[best] / SCORE_UNIT);
    }
  }
}
