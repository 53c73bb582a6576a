/** Importing this loads no TensorFlow: only the child processes do. */
export { type CardSummary, type ModelCard, modelCard } from './card.js';
export { counted } from './counted.js';
export { Doors } from './distributed/doors.js';
export { trafficOf } from './distributed/report.js';
export { type EngineName, loadEngine } from './engine/load-engine.js';
export { chosenEngine, type SelectedEngine, selectEngine } from './engine/select-engine.js';
export type { Tf } from './engine/tf.js';
export { nothingTrained, unknownTexture, unlikeEngines } from './errors.js';
export { BatchGradients } from './gradients.js';
export { validationDate } from './hold-out.js';
export type { ImageScores } from './image-scores.js';
export { DEFAULT_SEED, TRAINING_MODES, type TrainingMode } from './inputs.js';
export { type Metrics, type ModelMetrics, metricsOf, pooledScore, spreadOf } from './metrics.js';
export { modelNamed } from './models/index.js';
export type { ModelSpec } from './models/spec.js';
export { exportOnnx } from './onnx/export-onnx.js';
export type { PlaceDate } from './place-dates.js';
export { type PredictResults, predictProcess } from './predict/predict-process.js';
export { trainProcess } from './process.js';
export { randomStream, shuffledOrder } from './random.js';
export {
  type CheckedPlace,
  type CheckInputs,
  checkPlace,
  type PlaceInputs,
  type RemotePlace,
  remotePlace,
} from './remote/remote-place.js';
export { SENT_LIMIT, sent } from './remote/sent-model.js';
export { placeInputs, type StoreInputs, storeModelProcess } from './remote/store-process.js';
export { reasonsOf, type TrainResults } from './results.js';
export { type PlaceProgress, type PlaceResult, trainPlaces } from './trainer.js';
export { type SimilarPlace, TextureIndex } from './transfer/texture-index.js';
export { textureProcess } from './transfer/texture-process.js';
export type { ClusteredCollection, TextureResults } from './transfer/texture-results.js';
export { TextureWorkers } from './transfer/workers.js';
export { loadModel, saveModel } from './weights.js';
export type { PlaceTask } from './worker-messages.js';
export { answerOf, EnginePool } from './workers/engine-pool.js';
export { EngineProcess } from './workers/engine-process.js';
export { type Handler, serveRequests } from './workers/serve-requests.js';
