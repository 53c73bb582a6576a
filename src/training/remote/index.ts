/**
 * Training outside of the node, for example in a Kubernetes Job: the manifest of a cell, the upload, and the job that stores it. Invariant:
 * an upload contains numbers only; the node builds topology and card itself. Imports the folders `data`, `jobs`, `learners` (types),
 * `models`, `patches`, `registry` and `train-cell` and the parts `derive`, `engines`, `jobs` (types), `query` and `storage` (types).
 */
export {
  type CellCheck,
  type CellInputs,
  type CellManifest,
  type CheckInputs,
  cellManifest,
  checkCell,
} from './remote-cell-manifest.js';
export { encodeUpload, MAX_UPLOAD_BYTES } from './remote-model-upload.js';
export { cellInputsSchema, type StoreInputs, storeModelProcess } from './store-remote-model-process.js';
