/** Smoothed spectra and their derivatives, by polynomials at the wavelengths of the bands (Savitzky and Golay 1964). */

import { COUNT, listOf, objectOf } from '../../utils/json-schema.js';
import { type AnalysisInputs, integer, selectBands } from '../analysis.js';
import { spectrumChart } from '../charts.js';
import { badSmoothing, shortRuns } from '../errors.js';
import { choleskyFactor, inverseOfLower, multiplyVector } from '../linear-algebra.js';
import type { MapAnalysis, MapResults } from '../map-analysis.js';
import type { AnalysedBand } from '../tile-spectrum.js';
import { gaplessRuns, mapReflectanceTags, mapSpectralTags } from '../wavelengths.js';

interface SmoothingWindow {
  /** Bands of a window, odd. */
  window: number;
  /** Order of the polynomial, below `window`. */
  order: number;
  /** 0 for the smoothed value, 1 or 2 for a derivative; at most `order`. */
  derivative: number;
}

/**
 * Returns weights for the value, or the derivative per nm or nm², of each band of a run; size x size, row by row. `wavelengths`: of the
 * run, nm, ascending, at least `window` of them. Each value is that of the best-fitting polynomial in the window around the band. Near an
 * end the outermost window is used, as with `mode="interp"` of scipy.signal.savgol_filter, which gives the same result for evenly spaced
 * bands.
 */
export function savitzkyGolay(
  wavelengths: readonly number[],
  { window, order, derivative }: SmoothingWindow,
): Float64Array {
  const size = wavelengths.length;
  const weights = new Float64Array(size * size);
  for (let band = 0; band < size; band++) {
    const first = Math.max(0, Math.min(size - window, band - (window - 1) / 2));
    const taken = wavelengths.slice(first, first + window);
    weights.set(fitWeights(taken, wavelengths[band], order, derivative), band * size + first);
  }
  return weights;
}

/** Weights of samples in a derivative, at a wavelength, of the best-fitting polynomial. */
function fitWeights(samples: number[], wavelength: number, order: number, derivative: number): Float64Array {
  const low = samples[0];
  const high = samples[samples.length - 1];
  // Between -1 and 1, powers differ enough for the normal equations.
  const half = (high - low) / 2;
  const scaled = (wavelength: number) => (wavelength - (low + high) / 2) / half;
  const terms = order + 1;
  const powers = samples.map((sample) => powersOf(scaled(sample), terms));
  const gram = Float64Array.from({ length: terms * terms }, (_, at) => {
    const [i, j] = [Math.floor(at / terms), at % terms];
    return powers.reduce((sum, power) => sum + power[i] * power[j], 0);
  });
  const lower = choleskyFactor(gram, terms);
  if (!lower) throw new Error(`a polynomial of order ${order} does not fit ${samples.length} wavelengths`);
  const inverse = inverseOfLower(lower, terms);
  const whiten = (vector: number[]) =>
    vector.map((_, i) => vector.reduce((sum, value, k) => sum + inverse[i * terms + k] * value, 0));
  const wanted = whiten(derivativesOf(scaled(wavelength), terms, derivative));
  return Float64Array.from(powers, (power) => {
    const own = whiten(power);
    return own.reduce((sum, value, i) => sum + value * wanted[i], 0) / half ** derivative;
  });
}

const powersOf = (x: number, terms: number) => Array.from({ length: terms }, (_, power) => x ** power);

/** The derivative of each power at x. */
function derivativesOf(x: number, terms: number, derivative: number): number[] {
  return Array.from({ length: terms }, (_, power) => {
    if (power < derivative) return 0;
    let factor = 1;
    for (let k = 0; k < derivative; k++) factor *= power - k;
    return factor * x ** (power - derivative);
  });
}

export interface SmoothInputs extends AnalysisInputs, Partial<SmoothingWindow> {}

interface SmoothFit {
  /** Number of bands of each run, in the order of the bands. */
  runs: number[];
  /** Number of bands in runs that are shorter than the window. */
  leftOut: number;
}

export interface SmoothResults extends MapResults, SmoothFit, SmoothingWindow {}

const DEFAULTS: SmoothingWindow = { window: 7, order: 2, derivative: 0 };
/** Higher powers of wavelengths are nearly collinear. */
const MAX_ORDER = 5;
const MAX_WINDOW = 101;
const UNITS = ['', '1/nm', '1/nm²'];

export const spectralSmoothingProcess: MapAnalysis<SmoothInputs, SmoothFit> = {
  name: 'smooth',
  title: 'Smoothed spectra',
  description:
    'Spectra smoothed by polynomials (Savitzky-Golay), or their first or second derivative per nm, at the wavelengths of the bands, within runs of bands without a jump or a gap.',
  properties: {
    window: integer(3, MAX_WINDOW, {
      default: DEFAULTS.window,
      description: 'Bands of a window, an odd number',
    }),
    order: integer(0, MAX_ORDER, { default: DEFAULTS.order, description: 'Order of the polynomial' }),
    derivative: integer(0, 2, { default: DEFAULTS.derivative }),
  },
  fit: objectOf({ runs: listOf(COUNT), leftOut: COUNT }),
  check: (inputs) => {
    const { window, order, derivative } = windowOf(inputs);
    if (window % 2 === 0 || window <= order || order < derivative)
      throw badSmoothing(window, order, derivative);
  },
  showsSpectra: true,
  run: async (agreed, inputs) => {
    const window = windowOf(inputs);
    const all = gaplessRuns(agreed.bands.map(({ wavelength }) => wavelength));
    const kept = all.filter(({ length }) => length >= window.window);
    if (kept.length === 0) throw shortRuns(window.window, Math.max(...all.map(({ length }) => length)));
    const analysed = selectBands(
      agreed,
      kept.flat().toSorted((a, b) => a - b),
    );
    const { bands } = analysed;
    const runs = kept.map(({ length }) => length);
    const tags = window.derivative === 0 ? mapReflectanceTags(bands) : mapSpectralTags(bands);
    return {
      map: {
        method: {
          kind: 'linear',
          weights: smoothingWeights(bands, runs, window),
          centre: new Float64Array(bands.length),
        },
        bands: bands.map(({ name }) => name),
        tags,
      },
      analysed,
      fit: { runs, leftOut: agreed.bands.length - bands.length },
    };
  },
  conclude: (fit, inputs, bands, examples) => {
    const window = windowOf(inputs);
    const weights = smoothingWeights(bands, fit.runs, window);
    const made = examples.map(({ name, values }) => ({ name, values: multiplyVector(weights, values) }));
    const { derivative } = window;
    return {
      summary: { ...window, ...fit },
      facts: [
        `window of ${window.window} bands, polynomials of order ${window.order}`,
        derivative === 0 ? 'smoothed' : `derivative ${derivative}`,
      ],
      sections: [
        { title: 'Spectra', content: spectrumChart(bands, examples) },
        {
          title: derivative === 0 ? 'Smoothed spectra' : `Derivative ${derivative}`,
          content: spectrumChart(bands, made, UNITS[derivative]),
        },
      ],
    };
  },
};

function windowOf({
  window = DEFAULTS.window,
  order = DEFAULTS.order,
  derivative = DEFAULTS.derivative,
}: SmoothInputs): SmoothingWindow {
  return { window, order, derivative };
}

/** Weights of bands x bands, row by row. `runs`: the number of bands of each run, which is smoothed separately. */
function smoothingWeights(
  bands: readonly AnalysedBand[],
  runs: readonly number[],
  window: SmoothingWindow,
): Float64Array {
  const size = bands.length;
  const weights = new Float64Array(size * size);
  let first = 0;
  for (const length of runs) {
    const run = Array.from({ length }, (_, i) => first + i).sort(
      (a, b) => bands[a].wavelength - bands[b].wavelength,
    );
    const own = savitzkyGolay(
      run.map((band) => bands[band].wavelength),
      window,
    );
    for (const [i, to] of run.entries())
      for (const [j, from] of run.entries()) weights[to * size + from] = own[i * length + j];
    first += length;
  }
  return weights;
}
