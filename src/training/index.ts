/** Importing this loads no TensorFlow: only the child processes do. */

export type { PlaceDate } from './data/acquisitions.js';
export { trafficOf } from './distributed/distributed-report.js';
export { Doors } from './distributed/rendezvous.js';
export { nothingTrained, unknownTexture, unlikeEngines } from './errors.js';
export type { ImageScores } from './evaluation/image-scores.js';
export { type Metrics, type ModelMetrics, metricsOf, pooledScore, spreadOf } from './evaluation/metrics.js';
export { type PredictResults, predictProcess } from './inference/predict-process.js';
export { DEFAULT_SEED, TRAINING_MODES, type TrainingMode } from './jobs/train-options.js';
export { trainProcess } from './jobs/train-process.js';
export { reasonsOf, type TrainResults } from './jobs/train-results.js';
export { BatchGradients } from './loop/gradients.js';
export { modelNamed } from './models/builtin-models.js';
export type { ModelSpec } from './models/model-spec.js';
export { exportOnnx } from './onnx/export-onnx.js';
export { validationDate } from './patches/hold-out.js';
export { type CardSummary, type ModelCard, modelCard } from './registry/model-card.js';
export { loadModel, saveModel } from './registry/saved-model.js';
export {
  type CheckedPlace,
  type CheckInputs,
  checkPlace,
  type PlaceInputs,
  type RemotePlace,
  remotePlace,
} from './remote/cell-manifest.js';
export { SENT_LIMIT, sent } from './remote/model-upload.js';
export { placeInputs, type StoreInputs, storeModelProcess } from './remote/store-model-process.js';
export { type SimilarPlace, TextureIndex } from './texture/texture-index.js';
export { TextureWorkers } from './texture/texture-pool.js';
export { textureProcess } from './texture/texture-process.js';
export type { ClusteredCollection, TextureResults } from './texture/texture-results.js';
export type { PlaceTask } from './workers/training-messages.js';
export { type PlaceProgress, type PlaceResult, trainPlaces } from './workers/training-pool.js';
