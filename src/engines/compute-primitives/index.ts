/**
 * The numerical primitives of the kernels: GEMM, convolutions (im2col, direct, Winograd), pooling, batch normalisation. `ComputePrimitives`
 * has two implementations: WebAssembly on the heap of tfjs (here) and the oneDNN addon; a contract test runs both. native/onednn.cc exports
 * its member names. Imports no other folder.
 */
export { type ComputePrimitives, FILTER_GRADIENT, FORWARD, INPUT_GRADIENT } from './compute-primitives.js';
export { wasmPrimitives } from './wasm-primitives.js';
export { hasMultiplyAdd } from './wasm-primitives-heap.js';
