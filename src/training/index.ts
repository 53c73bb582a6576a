/**
 * Trains small models for each cell, evaluates them beside baselines, stores them with a model card, and applies them. Data flow:
 * acquisitions, patches, learner, evaluation, model store, prediction. Invariants: validation never uses ground or dates that training
 * uses; importing this index loads no TensorFlow, which only the child processes do. Imports the parts `async`, `derive`, `dht`, `engines`,
 * `expressions`, `grid` (types), `ingest`, `jobs` (types), `query`, `raster` and `storage`.
 */

export type { AcquisitionFiles } from './acquisitions.js';
export { servedSpec } from './candidates.js';
export { Rendezvous } from './distributed/rendezvous.js';
export { mixedEngines, nothingTrained, unknownTexture } from './errors.js';
export type { Metrics, ModelMetrics } from './evaluation.js';
export type { PlaceFreshness } from './freshness/judgement.js';
export { type CheckResults, checkProcess } from './freshness/process.js';
export { validationDate } from './hold-out.js';
export type { ImageScores } from './image-metrics.js';
export { BatchGradients } from './learner.js';
export { type CardSummary, describeTraffic, type ModelCard, type TrainingMode } from './model-card.js';
export { getModelSpec } from './models/builtin.js';
export { inputPlanes, type ModelSpec } from './models/spec.js';
export { loadModel, saveModel } from './models/weights.js';
export { exportOnnx } from './onnx.js';
export { type PredictResults, predictProcess } from './predict-process.js';
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
} from './remote-training.js';
export { type ScoreResults, scoreProcess } from './score/process.js';
export {
  type ClusteredCollection,
  TexturePool,
  type TextureResults,
  textureProcess,
} from './texture/process.js';
export { TextureIndex, type TextureNeighbour } from './texture/texture-index.js';
export { DEFAULT_SEED } from './train-inputs.js';
export { trainCells } from './train-pool.js';
export { trainProcess } from './train-process.js';
export { summariseReasons, type TrainResults } from './train-results.js';
