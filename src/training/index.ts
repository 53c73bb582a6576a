/** Importing this loads no TensorFlow: only the child processes do. */

export type { AcquisitionFiles } from './data/acquisitions.js';
export { Rendezvous } from './distributed/rendezvous.js';
export { mixedEngines, nothingTrained, unknownTexture } from './errors.js';
export type { ImageScores } from './evaluation/image-scores.js';
export {
  type Metrics,
  type ModelMetrics,
  pooledScore,
  regressionMetrics,
  targetStatistics,
} from './evaluation/metrics.js';
export { DEFAULT_SEED } from './jobs/train-options.js';
export { trainProcess } from './jobs/train-process.js';
export { summariseReasons, type TrainResults } from './jobs/train-results.js';
export { BatchGradients } from './loop/gradients.js';
export { getModelSpec } from './models/builtin-models.js';
export type { ModelSpec } from './models/model-spec.js';
export { loadModel, saveModel } from './models/saved-model.js';
export { exportOnnx } from './onnx/export-onnx.js';
export { validationDate } from './patches/hold-out.js';
export { type PredictResults, predictProcess } from './predict/predict-process.js';
export { describeTraffic } from './registry/distributed-report.js';
export {
  type CardSummary,
  type ModelCard,
  modelCard,
  TRAINING_MODES,
  type TrainingMode,
} from './registry/model-card.js';
export {
  type CellCheck,
  type CellInputs,
  type CellManifest,
  type CheckInputs,
  cellManifest,
  checkCell,
} from './remote/cell-manifest.js';
export { encodeUpload, MAX_UPLOAD_BYTES } from './remote/model-upload.js';
export { cellInputsSchema, type StoreInputs, storeModelProcess } from './remote/store-model-process.js';
export { TextureIndex, type TextureNeighbour } from './texture/texture-index.js';
export { TexturePool } from './texture/texture-pool.js';
export { textureProcess } from './texture/texture-process.js';
export type { ClusteredCollection, TextureResults } from './texture/texture-results.js';
export type { TrainCellTask } from './workers/training-messages.js';
export { type CellProgress, type CellResult, trainCells } from './workers/training-pool.js';
