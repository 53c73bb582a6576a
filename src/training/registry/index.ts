/**
 * A trained model as stored: model card, version, and provenance. Invariant: a model and its card are stored together or not at all.
 * Imports the folders `data` (types), `evaluation` (types), `learners` (types), `models` and `warm-start` (types) and the parts `engines`
 * (types), `grid` (types), `query` and `storage`.
 */

export {
  type CardSummary,
  type ModelCard,
  type ModelCardContext,
  modelCard,
  TRAINING_MODES,
  type TrainingMode,
} from './model-card.js';
export { type DistributedReport, describeTraffic } from './model-card-distributed-report.js';
export {
  TRANSFER_POLICIES,
  type TransferPolicy,
  type TransferProvenance,
} from './model-card-provenance.js';
export {
  type ModelResult,
  modelStoredByJob,
  type StoredModel,
  type StoreModelContext,
  storeModel,
} from './store-model.js';
