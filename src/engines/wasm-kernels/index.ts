/**
 * Kernels registered with the tfjs WASM backend. Each adapts tensors to a compute primitive; unusual shapes and types stay with the stock
 * kernel. Imports files of a folder above (types) and the folders `compute-primitives` and `tfjs-extensions`.
 */
export { registerTrainingKernels } from './register-wasm-kernels.js';
