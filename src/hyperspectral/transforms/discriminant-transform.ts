/** Linear discriminant analysis with shrinkage (Friedman 1989; Hastie, Tibshirani and Friedman 2009, 4.3). */
import { singularCovariance } from '../errors.js';
import { choleskyFactor, inverseOfLower, trace } from '../numeric/index.js';
import type { BandStatistics, ClassMean } from '../reproducible-sums/index.js';

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
 * Returns weights and bias with one row per class: the score of a class is weights (x - centre) + bias, the logarithm of its probability up
 * to a constant. `shrinkage`: share of the covariance that is replaced by the mean variance, 0 to 1. Throws TW_ANALYSIS_SINGULAR.
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
