/** Methods that compute values from the spectrum of a pixel. */
import { evaluateProgram, type Program } from '../../expressions/index.js';
import type { PixelArray } from '../../raster/index.js';
import { eachBlock, type SpectrumBlock, type SpectrumFile } from '../blocks.js';
import type { ValueEncoding } from '../sums.js';
import { AbundanceSolver } from './abundances.js';
import { continuumRemoval, deepestBand } from './continuum.js';
import {
  centredLayers,
  type DenseLayer,
  type DenseNetwork,
  PanelNetwork,
  padRows,
  softmax,
} from './dense-network.js';
import { PANEL_PIXELS, PixelPanel } from './panel.js';

/** Plain data. x is the spectrum of physical values; vectors have one number for each band. */
export type PixelMethod =
  /** weights * (x - centre), rows x bands: components, the matched filter, smoothing, and resampling. */
  | { kind: 'linear'; weights: Float64Array; centre: Float64Array }
  /** |L^-1 (x - centre)|^2, where the covariance is L L': the squared Mahalanobis distance (Reed and Yu 1990). */
  | { kind: 'distance'; whitening: Float64Array; centre: Float64Array }
  /** |x - c| for each centre c, rows x bands. `centre`: a spectrum near all pixels, such as their mean, for precision in float32. */
  | { kind: 'euclidean'; centres: Float64Array; centre: Float64Array }
  /** The cosine of the angle between L^-1 (x - centre) and each target, squared, with its sign (Kraut, Scharf and Butler 2005). */
  | { kind: 'coherence'; whitening: Float64Array; centre: Float64Array; targets: Float64Array }
  /** The angle between x and each target, radians (Kruse et al. 1993). */
  | { kind: 'angle'; targets: Float64Array }
  /** The spectral information divergence of x and each target (Chang 2000). */
  | { kind: 'divergence'; targets: Float64Array }
  /** The probability of each class by a network of layers, for x - centre. */
  | { kind: 'probabilities'; layers: DenseLayer[]; centre: Float64Array }
  /** The abundance of each endmember, and the root mean square of the residual. */
  | { kind: 'abundances'; endmembers: Float64Array; count: number; sumsToOne: boolean }
  /** The value of each expression. Programs count the bands from 0. */
  | { kind: 'expressions'; programs: Program[] }
  /** x divided by its upper convex hull over the wavelengths, nm; for `depth` the largest depth below 1, and its wavelength. */
  | { kind: 'continuum'; wavelengths: Float64Array; depth: boolean };

/** The method of a dense network. */
export function layersMethod(network: DenseNetwork): PixelMethod {
  return { kind: 'probabilities', layers: centredLayers(network), centre: network.centre };
}

/** Values of pixels, up to 64 at a time. */
interface PixelFunction {
  readonly rows: number;
  /**
   * Evaluates up to 64 pixels from `indexes[from]` on. Row r of pixel `indexes[from + i]` is `values[r * 64 + i]`, valid until the next
   * call. NaN if the method has no value, as for a spectrum of zeros.
   */
  evaluate(bands: readonly PixelArray[], indexes: Int32Array, from: number): Float32Array | Float64Array;
}

/**
 * Evaluates a method on all pixels of a tile that are clear and have data in every band. `indexes`: up to 64 pixels of the block; row r of
 * pixel `indexes[i]` is `values[r * 64 + i]`. Throws TW_IMAGERY_TILE_FILE and the errors of `visit`.
 */
export function eachPanel(
  file: SpectrumFile,
  { evaluate }: PixelFunction,
  visit: (values: Float32Array | Float64Array, block: SpectrumBlock, indexes: Int32Array) => void,
): void {
  eachBlock(file, (block) => {
    const { bands, indexes } = block;
    for (let from = 0; from < indexes.length; from += PANEL_PIXELS)
      visit(evaluate(bands, indexes, from), block, indexes.subarray(from, from + PANEL_PIXELS));
  });
}

/** A method for stored numbers of an encoding. */
export function pixelFunction<Kind extends PixelMethod['kind']>(
  method: Method<Kind>,
  coding: ValueEncoding,
): PixelFunction {
  return FUNCTIONS[method.kind as Kind](method, coding);
}

type Method<Kind extends PixelMethod['kind']> = Extract<PixelMethod, { kind: Kind }>;

const FUNCTIONS: {
  [Kind in PixelMethod['kind']]: (method: Method<Kind>, coding: ValueEncoding) => PixelFunction;
} = {
  linear,
  distance,
  euclidean,
  coherence,
  angle,
  divergence,
  probabilities,
  abundances,
  expressions,
  continuum,
};

/** A method that computes the `rows` of the pixels that the panel has loaded. `compute` gets the number of these pixels. */
function onPanel(
  panel: PixelPanel,
  rows: number,
  compute: (count: number) => Float32Array | Float64Array,
): PixelFunction {
  return { rows, evaluate: (bands, indexes, from) => compute(panel.load(bands, indexes, from)) };
}

function linear({ weights, centre }: Method<'linear'>, coding: ValueEncoding): PixelFunction {
  const panel = new PixelPanel(coding, centre);
  const matrix = panel.matrix(weights, centre.length);
  return onPanel(panel, weights.length / centre.length, () => panel.multiply(matrix, panel.pixels));
}

function probabilities({ layers, centre }: Method<'probabilities'>, coding: ValueEncoding): PixelFunction {
  const panel = new PixelPanel(coding, centre);
  const network = new PanelNetwork(panel, layers);
  const rows = layers.at(-1)!.bias.length;
  const values = new Float64Array(rows * PANEL_PIXELS);
  const shares = new Float64Array(rows);
  return onPanel(panel, rows, (count) => {
    const scores = network.forward();
    for (let i = 0; i < count; i++) {
      softmax(scores, i, rows, shares);
      for (let r = 0; r < rows; r++) values[r * PANEL_PIXELS + i] = shares[r];
    }
    return values;
  });
}

function distance({ whitening, centre }: Method<'distance'>, coding: ValueEncoding): PixelFunction {
  const bands = centre.length;
  const panel = new PixelPanel(coding, centre);
  const matrix = panel.matrix(whitening, bands);
  const out = panel.plane(1);
  return onPanel(panel, 1, () => {
    panel.multiply(matrix, panel.pixels);
    return panel.squares(matrix.out, out, bands);
  });
}

/** Computes |x|^2 - 2 c.x + |c|^2 after subtracting the centre, so that few digits cancel. */
function euclidean({ centres, centre }: Method<'euclidean'>, coding: ValueEncoding): PixelFunction {
  const bands = centre.length;
  const rows = centres.length / bands;
  const panel = new PixelPanel(coding, centre);
  const shifted = centres.map((value, at) => value - centre[at % bands]);
  const matrix = panel.matrix(shifted, bands);
  const norms = panel.plane(1);
  const own = Array.from({ length: rows }, (_, row) => {
    const one = shifted.subarray(row * bands, (row + 1) * bands);
    return one.reduce((sum, value) => sum + value * value, 0);
  });
  return onPanel(panel, rows, () => {
    const squares = panel.squares(panel.pixels, norms);
    const values = panel.multiply(matrix, panel.pixels);
    for (let r = 0; r < rows; r++)
      for (let at = r * PANEL_PIXELS, i = 0; i < PANEL_PIXELS; i++, at++)
        values[at] = Math.sqrt(Math.max(0, squares[i] - 2 * values[at] + own[r]));
    return values;
  });
}

function coherence(
  { whitening, centre, targets }: Method<'coherence'>,
  coding: ValueEncoding,
): PixelFunction {
  const bands = centre.length;
  const panel = new PixelPanel(coding, centre);
  const white = panel.matrix(whitening, bands);
  const padded = padRows(unitRows(targets, bands), bands, white.out.rows);
  const products = panel.matrix(padded, white.out.rows);
  const norms = panel.plane(1);
  const rows = targets.length / bands;
  return onPanel(panel, rows, () => {
    panel.multiply(white, panel.pixels);
    const squares = panel.squares(white.out, norms, bands);
    const values = panel.multiply(products, white.out);
    for (let at = 0; at < rows * PANEL_PIXELS; at++)
      values[at] = (values[at] * Math.abs(values[at])) / squares[at % PANEL_PIXELS];
    return values;
  });
}

function angle({ targets }: Method<'angle'>, coding: ValueEncoding): PixelFunction {
  const bands = coding.scales.length;
  const panel = new PixelPanel(coding);
  const matrix = panel.matrix(unitRows(targets, bands), bands);
  const norms = panel.plane(1);
  const rows = targets.length / bands;
  return onPanel(panel, rows, () => panel.angles(matrix, norms));
}

/**
 * With p = x / sum x and q = t / sum t, the divergence is the sum of (p - q) (log p - log q) = p log p + q log q - p log q - q log p.
 * Values below 1e-6 count as 1e-6.
 */
function divergence({ targets }: Method<'divergence'>, coding: ValueEncoding): PixelFunction {
  const bands = coding.scales.length;
  const panel = new PixelPanel(coding);
  const shares = panel.plane(bands);
  const logs = panel.plane(bands);
  const rows = targets.length / bands;
  const q = Float64Array.from(targets, (value, at) => {
    const row = Math.floor(at / bands);
    const all = targets.subarray(row * bands, (row + 1) * bands);
    return (
      Math.max(value, MIN_DIVERGENCE_VALUE) /
      all.reduce((sum, one) => sum + Math.max(one, MIN_DIVERGENCE_VALUE), 0)
    );
  });
  const ofShares = panel.matrix(q.map(Math.log), bands);
  const ofLogs = panel.matrix(q, bands);
  const own = Array.from({ length: rows }, (_, row) => {
    const all = q.subarray(row * bands, (row + 1) * bands);
    return all.reduce((sum, value) => sum + value * Math.log(value), 0);
  });
  return onPanel(panel, rows, (count) => {
    const x = panel.values(panel.pixels);
    const p = panel.values(shares);
    const logP = panel.values(logs);
    const entropies = new Float64Array(PANEL_PIXELS);
    for (let i = 0; i < count; i++) {
      let sum = 0;
      for (let at = i; at < x.length; at += PANEL_PIXELS) sum += Math.max(x[at], MIN_DIVERGENCE_VALUE);
      for (let at = i; at < x.length; at += PANEL_PIXELS) {
        const share = Math.max(x[at], MIN_DIVERGENCE_VALUE) / sum;
        const log = Math.log(share);
        p[at] = share;
        logP[at] = log;
        entropies[i] += share * log;
      }
    }
    const values = panel.multiply(ofShares, shares);
    const others = panel.multiply(ofLogs, logs);
    for (let at = 0; at < rows * PANEL_PIXELS; at++)
      values[at] =
        entropies[at % PANEL_PIXELS] + own[Math.floor(at / PANEL_PIXELS)] - values[at] - others[at];
    return values;
  });
}

function abundances(
  { endmembers, count, sumsToOne }: Method<'abundances'>,
  coding: ValueEncoding,
): PixelFunction {
  const bands = coding.scales.length;
  const panel = new PixelPanel(coding, undefined, 8);
  const matrix = panel.matrix(endmembers, bands);
  const norms = panel.plane(1);
  const solver = new AbundanceSolver(endmembers, count, sumsToOne);
  const values = new Float64Array((count + 1) * PANEL_PIXELS);
  return onPanel(panel, count + 1, (taken) => {
    const products = panel.multiply(matrix, panel.pixels);
    const squares = panel.squares(panel.pixels, norms);
    for (let i = 0; i < taken; i++) {
      const shares = solver.solve(products, i, PANEL_PIXELS);
      for (let k = 0; k < count; k++) values[k * PANEL_PIXELS + i] = shares[k];
      values[count * PANEL_PIXELS + i] = Math.sqrt(solver.residual(squares[i]) / bands);
    }
    return values;
  });
}

function expressions({ programs }: Method<'expressions'>, coding: ValueEncoding): PixelFunction {
  const panel = new PixelPanel(coding, undefined, 8);
  const values = new Float64Array(programs.length * PANEL_PIXELS);
  return onPanel(panel, programs.length, (count) => {
    const physical = panel.values(panel.pixels) as Float64Array;
    const inputs = Array.from(coding.scales, (_, band) =>
      physical.subarray(band * PANEL_PIXELS, band * PANEL_PIXELS + count),
    );
    for (const [row, program] of programs.entries())
      values.set(evaluateProgram(program, inputs, count), row * PANEL_PIXELS);
    return values;
  });
}

function continuum({ wavelengths, depth }: Method<'continuum'>, coding: ValueEncoding): PixelFunction {
  const bands = wavelengths.length;
  const panel = new PixelPanel(coding, undefined, 8);
  const remove = continuumRemoval(wavelengths);
  const spectrum = new Float64Array(bands);
  const rows = depth ? 2 : bands;
  const values = new Float64Array(rows * PANEL_PIXELS);
  return onPanel(panel, rows, (count) => {
    const physical = panel.values(panel.pixels);
    for (let i = 0; i < count; i++) {
      for (let band = 0; band < bands; band++) spectrum[band] = physical[band * PANEL_PIXELS + i];
      remove(spectrum);
      if (depth) {
        const deepest = deepestBand(spectrum, wavelengths);
        values[i] = deepest.depth;
        values[PANEL_PIXELS + i] = deepest.wavelength;
      } else for (let band = 0; band < bands; band++) values[band * PANEL_PIXELS + i] = spectrum[band];
    }
    return values;
  });
}

/** Lower limit of values in the divergence, because zero has no logarithm. */
export const MIN_DIVERGENCE_VALUE = 1e-6;

/** Scales rows to length 1. */
function unitRows(rows: Float64Array, columns: number): Float64Array {
  return rows.map((value, at) => {
    const row = Math.floor(at / columns);
    const all = rows.subarray(row * columns, (row + 1) * columns);
    return value / Math.sqrt(all.reduce((sum, one) => sum + one * one, 0));
  });
}
