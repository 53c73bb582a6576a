/** Whitening transform of a covariance, for detectors. Runs in worker threads. */
import { singularCovariance } from '../errors.js';
import { choleskyFactor, inverseOfLower, trace } from '../numeric/index.js';

export interface WhiteningTask {
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
 * Returns L^-1, where the covariance is L L', bands x bands, and the share of the mean variance that was added to the diagonal, 0 for none.
 * Throws TW_ANALYSIS_SINGULAR if the covariance has no inverse.
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
