/** Whitening by a covariance, for detectors. Runs in worker threads. */
import { singularCovariance } from '../errors.js';
import { choleskyFactor, inverseOfLower } from '../numeric/cholesky.js';

export interface WhiteningTask {
  kind: 'whitening';
  /** Symmetric, bands x bands, of so many pixels. */
  covariance: Float64Array;
  pixels: number;
}

export interface Whitening {
  /** L^-1, where the covariance is L L'; bands x bands. */
  whitening: Float64Array;
  /** Share of the mean variance that was added to the diagonal; 0 for none. */
  loading: number;
}

/** Fewer pixels for each band leave the small eigenvalues of a covariance unknown: a little is then added to its diagonal. */
const MIN_PIXELS_PER_BAND = 10;
const DIAGONAL_LOADING = 1e-4;

/** Throws TW_ANALYSIS_SINGULAR if the covariance has no inverse. */
export function whitening({ covariance, pixels }: WhiteningTask): Whitening {
  const size = Math.sqrt(covariance.length);
  const loading = pixels < MIN_PIXELS_PER_BAND * size ? DIAGONAL_LOADING : 0;
  const loaded = covariance.slice();
  let trace = 0;
  for (let i = 0; i < size; i++) trace += covariance[i * size + i]!;
  for (let i = 0; i < size; i++) loaded[i * size + i]! += (loading * trace) / size;
  const lower = choleskyFactor(loaded, size);
  if (!lower) throw singularCovariance(size, pixels);
  return { whitening: inverseOfLower(lower, size), loading };
}
