/**
 * Compute engines for neural networks: tfjs-node-gpu, WASM with oneDNN, WASM, tfjs-node. Selects an engine, loads it into a process, and
 * checks its results against PyTorch before it is used. Invariant: importing this index loads no TensorFlow. Imports the part `async`.
 */
export { engineMemory, engineUnavailable, noEngine } from './errors.js';
export { type CapturedKernels, captureKernels } from './kernel-capture.js';
export { ENGINE_NAMES, type EngineName, type LoadedEngine, loadEngine } from './load.js';
export {
  allowedCpus,
  EnginePool,
  EngineProcess,
  type Handler,
  ProcessEnded,
  resultOrFailure,
  serveRequests,
} from './processes.js';
export { type SelectedEngine, selectEngine, selectEngineCached } from './select.js';
export { adamStep, type Tf } from './tfjs.js';
