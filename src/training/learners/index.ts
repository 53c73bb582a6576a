/**
 * One training run: learners, gradients, Adam, learning-rate schedule, layer freezing, early stopping, checkpoints, and the report of its
 * results. Invariant: a run that resumes from a checkpoint reaches the same weights, bit for bit. Imports files of a folder above, the
 * folders `evaluation`, `inference`, `models`, `patches` and `warm-start` and the part `engines`.
 */

export { asVariables } from './learner.js';
export {
  CHECKPOINT_INTERVAL_S,
  type CheckpointState,
  findCheckpoint,
  writeTrainingCheckpoint,
} from './learner-checkpoint.js';
export { bestEpoch, hasStalled, WeightsSnapshot } from './learner-early-stopping.js';
export { BatchGradients } from './learner-gradients.js';
export { FREEZING_SCHEDULES, type FreezingSchedule } from './learner-layer-freezing.js';
export {
  type AdaptationProvenance,
  type CellReport,
  reportOf,
  type ScoreTile,
  type TrainedCell,
  type TrainingReport,
} from './learner-report.js';
export { readStateFile, writeStateFile } from './learner-state-file.js';
export { cosineLearningRate } from './learning-rate.js';
export { createLearner, trainModel } from './training-loop.js';
