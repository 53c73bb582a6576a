/** Smoothing and derivatives by polynomials (Savitzky and Golay 1964) at the wavelengths of the bands. */
import { choleskyFactor, inverseOfLower } from '../numeric/index.js';

export interface SmoothingWindow {
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
