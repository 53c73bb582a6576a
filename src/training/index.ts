/** Importing this loads no TensorFlow: only the child processes do. */
export { type CardSummary, type ModelCard, modelCard } from './registry/model-card.js';
export { counted } from '../plural.js';
export { Doors } from './distributed/rendezvous.js';
export { trafficOf } from './distributed/distributed-report.js';
export { type EngineName, loadEngine } from '../engines/load-engine.js';
export { chosenEngine, type SelectedEngine, selectEngine } from '../engines/select-engine.js';
export type { Tf } from '../engines/tfjs.js';
export { nothingTrained, unknownTexture, unlikeEngines } from './errors.js';
export { BatchGradients } from './loop/gradients.js';
export { validationDate } from './patches/hold-out.js';
export type { ImageScores } from './evaluation/image-scores.js';
export { DEFAULT_SEED, TRAINING_MODES, type TrainingMode } from './jobs/train-options.js';
export { type Metrics, type ModelMetrics, metricsOf, pooledScore, spreadOf } from './evaluation/metrics.js';
export { modelNamed } from './models/builtin-models.js';
export type { ModelSpec } from './models/model-spec.js';
export { exportOnnx } from './onnx/export-onnx.js';
export type { PlaceDate } from './data/acquisitions.js';
export { type PredictResults, predictProcess } from './inference/predict-process.js';
export { trainProcess } from './jobs/train-process.js';
export { randomStream, shuffledOrder } from '../random.js';
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
export { reasonsOf, type TrainResults } from './jobs/train-results.js';
export { type PlaceProgress, type PlaceResult, trainPlaces } from './workers/training-pool.js';
export { type SimilarPlace, TextureIndex } from './texture/texture-index.js';
export { textureProcess } from './texture/texture-process.js';
export type { ClusteredCollection, TextureResults } from './texture/texture-results.js';
export { TextureWorkers } from './texture/texture-pool.js';
export { loadModel, saveModel } from './registry/saved-model.js';
export type { PlaceTask } from './workers/training-messages.js';
export { answerOf, EnginePool } from '../engines/processes/engine-pool.js';
export { EngineProcess } from '../engines/processes/engine-process.js';
export { type Handler, serveRequests } from '../engines/processes/serve-requests.js';
