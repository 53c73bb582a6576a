/** Scores networks on labelled spectra. Runs in worker threads. */

import {
  type DenseLayer,
  identityEncoding,
  PANEL_PIXELS,
  PanelNetwork,
  PixelPanel,
  softmax,
} from '../pixel-methods/index.js';
import { type LabelledSpectra, loadSpectra } from '../training-samples/index.js';
import { SCORE_UNIT } from './dense-network-gradient.js';

export interface ScoreTask {
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
