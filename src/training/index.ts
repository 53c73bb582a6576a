/** Importing this loads no TensorFlow: only the child processes do. */
export { type CardSummary, type ModelCard, modelCard } from './card.js';
export { Doors } from './distributed/doors.js';
export { trafficOf } from './distributed/report.js';
export { selectEngine } from './engine/select-engine.js';
export { nothingTrained } from './errors.js';
export { DEFAULT_SEED } from './inputs.js';
export { type Metrics, metricsOf, pooledScore, spreadOf } from './metrics.js';
export { modelNamed } from './models/index.js';
export type { ModelSpec } from './models/spec.js';
export { exportOnnx } from './onnx/export-onnx.js';
export { type PredictResults, predictProcess } from './predict/predict-process.js';
export { trainProcess } from './process.js';
export { type PlaceInputs, type RemotePlace, remotePlace } from './remote/remote-place.js';
export { SENT_LIMIT, sent } from './remote/sent-model.js';
export { placeInputs, type StoreInputs, storeModelProcess } from './remote/store-process.js';
export { reasonsOf, type TrainResults } from './results.js';
export { type PlaceProgress, type PlaceResult, trainPlaces } from './trainer.js';
export type { PlaceDate, PlaceTask } from './worker-messages.js';
