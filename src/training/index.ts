/** Importing this loads no TensorFlow: only the child processes do. */
export { type CardSummary, type ModelCard, modelCard } from './card.js';
export { Doors } from './distributed/doors.js';
export { trafficOf } from './distributed/report.js';
export { type Metrics, metricsOf, pooledScore, spreadOf } from './metrics.js';
export { modelNamed } from './models/index.js';
export type { ModelSpec } from './models/spec.js';
export { exportOnnx } from './onnx/export-onnx.js';
export { predictProcess } from './predict/predict-process.js';
export { trainProcess } from './process.js';
export { reasonsOf, type TrainResults } from './results.js';
export { type PlaceProgress, type PlaceResult, trainPlaces } from './trainer.js';
export type { PlaceDate, PlaceTask } from './worker-messages.js';
