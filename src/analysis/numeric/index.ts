/**
 * Numerical routines that know nothing about spectra: float16, hashes, Cholesky, L-BFGS, matrix-vector products, shared arrays. Invariant:
 * results are deterministic, and computed in float64 unless named otherwise. Imports no other folder.
 */
export { choleskyFactor, inverseOfLower } from './cholesky.js';
export { fromFloat16, toFloat16 } from './float16.js';
export { murmurFinalise, sha256Digest } from './hash.js';
export { type Evaluation, minimiseLbfgs } from './l-bfgs.js';
export { multiplyVector } from './matrix-vector.js';
export { copyToSharedMemory } from './shared-memory.js';
