/**
 * DEFLATE and zlib streams in WebAssembly SIMD, with node:zlib as the fallback. Invariant: the decoder accepts and returns what zlib does;
 * without SIMD the results are the same. Imports the folder `pixels`.
 */
export { type BlockView, deflate, deflateWithPredictor } from './deflate.js';
export { inflate, inflatePrefix } from './inflate.js';
