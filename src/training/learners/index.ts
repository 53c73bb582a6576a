/**
 * One training run: learners, gradients, Adam, learning-rate schedule, layer freezing, early stopping, checkpoints, and the report of its
 * results. Invariant: a run that resumes from a checkpoint reaches the same weights, bit for bit. Imports files of a folder above, the
 * folders `evaluation`, `inference`, `models`, `patches` and `warm-start` and the part `engines`.
 */

export { bestEpoch, hasStalled, WeightsSnapshot } from './early-stopping.js';
export { asVariables } from './learner.js';
export { FREEZING_SCHEDULES, type FreezingSchedule } from './learner-layer-freezing.js';
export { cosineLearningRate } from './learning-rate.js';
export {
  CHECKPOINT_INTERVAL_S,
  type CheckpointState,
  findCheckpoint,
  writeTrainingCheckpoint,
} from './loop-checkpoint.js';
export { BatchGradients } from './loop-gradients.js';
export { type CellReport, reportOf, type TrainedCell, type TrainingReport } from './loop-report.js';
export { createLearner, trainModel } from './training-loop.js';
