/**
 * Kernels registered with the tfjs WASM backend, one operation a file. Each adapts tensors to a compute primitive; unusual shapes and
 * types stay with the stock kernel. Imports `compute-primitives` and `tfjs-extensions`.
 */
export { registerTrainingKernels } from './register-wasm-kernels.js';
