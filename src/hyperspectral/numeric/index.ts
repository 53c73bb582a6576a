/**
 * Numerical routines that know nothing about spectra: float16, hashes, Cholesky, L-BFGS and matrix-vector products. Invariant: results are
 * deterministic, and computed in float64 unless named otherwise. Imports no other folder.
 */

export { fromFloat16, toFloat16 } from '../../utils/float16.js';
export { choleskyFactor, inverseOfLower, trace } from './cholesky.js';
export { multiplyVector } from './matrix-vector.js';
export { murmurFinalise, sha256Digest } from './numeric-hash.js';
export { type Evaluation, minimiseLbfgs } from './numeric-l-bfgs.js';
