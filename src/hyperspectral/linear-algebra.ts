/** Cholesky factors, and what is computed from them: whitening and linear discriminants. All in f64, matrices row by row. */
import { singularCovariance } from './errors.js';
import type { BandStatistics, ClassMean } from './sums.js';

/** The sum of the diagonal. */
export function trace(matrix: Float64Array, size: number): number {
  let sum = 0;
  for (let i = 0; i < size; i++) sum += matrix[i * size + i];
  return sum;
}

/**
 * Returns L, where the matrix is L L'; undefined if the remainder of a diagonal element is at most the share `least` of the element. Reads
 * the lower part of the matrix and writes that of `lower`.
 */
export function choleskyFactor(
  matrix: Float64Array,
  size: number,
  { least = DIAGONAL_EPSILON, lower = new Float64Array(size * size) } = {},
): Float64Array | undefined {
  for (let i = 0; i < size; i++)
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * size + j];
      for (let k = 0; k < j; k++) sum -= lower[i * size + k] * lower[j * size + k];
      if (i !== j) lower[i * size + j] = sum / lower[j * size + j];
      else if (sum > least * matrix[i * size + i]) lower[i * size + i] = Math.sqrt(sum);
      else return undefined;
    }
  return lower;
}

/** Smaller remainders of a diagonal element are rounding errors of some hundred rows. */
const DIAGONAL_EPSILON = 1e-13;

/** The inverse of a lower triangular matrix. */
export function inverseOfLower(lower: Float64Array, size: number): Float64Array {
  const inverse = new Float64Array(size * size);
  for (let column = 0; column < size; column++)
    for (let row = column; row < size; row++) {
      let sum = row === column ? 1 : 0;
      for (let k = column; k < row; k++) sum -= lower[row * size + k] * inverse[k * size + column];
      inverse[row * size + column] = sum / lower[row * size + row];
    }
  return inverse;
}

/** The product of a matrix, row by row, with a spectrum that has one value per column. */
export function multiplyVector(weights: Float64Array, spectrum: ArrayLike<number>): Float64Array {
  const columns = spectrum.length;
  return Float64Array.from({ length: weights.length / columns }, (_, row) => {
    let sum = 0;
    for (let k = 0; k < columns; k++) sum += weights[row * columns + k] * spectrum[k];
    return sum;
  });
}

interface WhiteningTask {
  /** Symmetric, bands x bands. */
  covariance: Float64Array;
  /** Number of pixels that the covariance was computed from. */
  pixels: number;
}

/** With fewer pixels per band, the small eigenvalues of a covariance are uncertain, so its diagonal is loaded. */
const MIN_PIXELS_PER_BAND = 10;
/** Share of the mean variance that is added to the diagonal. */
const DIAGONAL_LOADING = 1e-4;

/**
 * Whitening transform of a covariance, for detectors. Runs in worker threads. Returns L^-1, where the covariance is L L', bands x bands,
 * and the share of the mean variance that was added to the diagonal, 0 for none. Throws TW_ANALYSIS_SINGULAR if the covariance has no
 * inverse.
 */
export function whitening({ covariance, pixels }: WhiteningTask) {
  const size = Math.sqrt(covariance.length);
  const loading = pixels < MIN_PIXELS_PER_BAND * size ? DIAGONAL_LOADING : 0;
  const loaded = covariance.slice();
  const variance = trace(covariance, size);
  for (let i = 0; i < size; i++) loaded[i * size + i] += (loading * variance) / size;
  const lower = choleskyFactor(loaded, size);
  if (!lower) throw singularCovariance(size, pixels);
  return { whitening: inverseOfLower(lower, size), loading };
}

/** Covariance within the classes, from the statistics of all their pixels together. */
export function withinClasses(
  { pixels, mean, covariance }: BandStatistics,
  classes: readonly ClassMean[],
): Float64Array {
  const size = mean.length;
  return covariance.map((value, at) => {
    const [i, j] = [Math.floor(at / size), at % size];
    const between = classes.reduce(
      (sum, one) => sum + one.pixels * (one.mean[i] - mean[i]) * (one.mean[j] - mean[j]),
      0,
    );
    return (value * (pixels - 1) - between) / (pixels - classes.length);
  });
}

/**
 * Linear discriminant analysis with shrinkage (Friedman 1989; Hastie, Tibshirani and Friedman 2009, 4.3). Returns weights and bias with one
 * row per class: the score of a class is weights (x - centre) + bias, the logarithm of its probability up to a constant. `shrinkage`: share
 * of the covariance that is replaced by the mean variance, 0 to 1. Throws TW_ANALYSIS_SINGULAR.
 */
export function discriminant(
  within: Float64Array,
  centre: Float64Array,
  classes: readonly ClassMean[],
  shrinkage: number,
) {
  const size = centre.length;
  const variance = trace(within, size);
  const shrunk = within.map((value, at) => {
    const isDiagonal = Math.floor(at / size) === at % size;
    return (1 - shrinkage) * value + (isDiagonal ? (shrinkage * variance) / size : 0);
  });
  const pixels = classes.reduce((sum, one) => sum + one.pixels, 0);
  const lower = choleskyFactor(shrunk, size);
  if (!lower) throw singularCovariance(size, pixels);
  const inverse = inverseOfLower(lower, size);
  const weights = new Float64Array(classes.length * size);
  const bias = new Float64Array(classes.length);
  for (const [k, { mean, pixels: own }] of classes.entries()) {
    const white = new Float64Array(size);
    for (let row = 0; row < size; row++)
      for (let band = 0; band <= row; band++)
        white[row] += inverse[row * size + band] * (mean[band] - centre[band]);
    let square = 0;
    for (let row = 0; row < size; row++) {
      square += white[row] ** 2;
      for (let band = 0; band <= row; band++)
        weights[k * size + band] += inverse[row * size + band] * white[row];
    }
    bias[k] = Math.log(own / pixels) - square / 2;
  }
  return { weights, bias };
}
