/** Importing this loads no TensorFlow: only the child processes do. */
export type { CardContext, CardTile, ModelCard } from './card.js';
export { modelCard } from './card.js';
export type { EngineName } from './engine/load-engine.js';
export type { EngineChoice, SelectedEngine } from './engine/select-engine.js';
export { selectEngine } from './engine/select-engine.js';
export * as trainingErrors from './errors.js';
export type { Metrics, Predictions } from './metrics.js';
export { metricsOf, pooledScore } from './metrics.js';
export { MODEL_NAMES, modelNamed } from './models/index.js';
export type { ModelSpec } from './models/spec.js';
export type { Place } from './places.js';
export { filesOf, groupByPlace } from './places.js';
export type { TrainContext, TrainInputs } from './process.js';
export { trainProcess } from './process.js';
export type { TrainResults } from './results.js';
export type { Baselines, EpochLoss } from './train-model.js';
export type { PlaceProgress, PlaceResult, TrainerOptions } from './trainer.js';
export { trainPlaces } from './trainer.js';
export type { ModelFiles } from './weights.js';
export type {
  BandFile,
  PlaceDate,
  PlaceError,
  PlaceOutcome,
  PlaceTask,
  TrainedPlace,
} from './worker-messages.js';
