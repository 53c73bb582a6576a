/**
 * Training and scoring of dense networks on labelled spectra in worker threads. Logistic regression is the network with a single layer.
 * Invariant: sums are integers, so they are exact in every order. Imports the folders `numeric`, `pixel-methods` and `training-samples`.
 */
export { type GradientSums, type GradientUnits, gradientSums, SCORE_UNIT } from './dense-network-gradient.js';
export { preconditioner } from './dense-network-preconditioner.js';
export {
  addPanelScores,
  addScores,
  noScores,
  RELIABILITY_BINS,
  type ScoreSums,
  SQUARED_ENTROPY_UNIT,
  scoreSums,
} from './dense-network-training-scores.js';
