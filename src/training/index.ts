/**
 * Trains small models for each cell, evaluates them beside baselines, stores them with a model card, and applies them. Data flow: data,
 * patches, learners, evaluation, registry, predict. Invariants: validation never uses ground or dates that training uses; importing this
 * index loads no TensorFlow, which only the child processes do. Imports the parts `async`, `derive`, `dht`, `engines`, `expressions`,
 * `grid` (types), `ingest`, `jobs` (types), `query`, `raster` and `storage`.
 */

export type { AcquisitionFiles } from './data/index.js';
export { Rendezvous } from './distributed/index.js';
export { mixedEngines, nothingTrained, unknownTexture } from './errors.js';
export type { ImageScores, Metrics, ModelMetrics } from './evaluation/index.js';
export { type CheckResults, checkProcess, type PlaceFreshness } from './freshness/index.js';
export { DEFAULT_SEED, summariseReasons, type TrainResults, trainProcess } from './jobs/index.js';
export { BatchGradients } from './learners/index.js';
export { getModelSpec, loadModel, type ModelSpec, saveModel } from './models/index.js';
export { exportOnnx } from './onnx/index.js';
export { validationDate } from './patches/index.js';
export { type PredictResults, predictProcess } from './predict/index.js';
export { type CardSummary, describeTraffic, type ModelCard, type TrainingMode } from './registry/index.js';
export {
  type CellCheck,
  type CellInputs,
  type CellManifest,
  type CheckInputs,
  cellInputsSchema,
  cellManifest,
  checkCell,
  encodeUpload,
  MAX_UPLOAD_BYTES,
  type StoreInputs,
  storeModelProcess,
} from './remote/index.js';
export {
  type ClusteredCollection,
  TextureIndex,
  type TextureNeighbour,
  TexturePool,
  type TextureResults,
  textureProcess,
} from './texture/index.js';
export { trainCells } from './train-cell/index.js';
