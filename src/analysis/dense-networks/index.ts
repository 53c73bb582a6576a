/**
 * Training and scoring of dense networks on labelled spectra in worker threads, and their files. Logistic regression is the network with a
 * single layer. Invariant: sums are integers, so they are exact in every order. Imports the folders numeric, pixel-methods and training-
 * samples.
 */
export { type GradientSums, type GradientUnits, gradientSums, SCORE_UNIT } from './gradient.js';
export { preconditioner } from './preconditioner.js';
export { parseNetwork, saveClassifier } from './saved-classifier.js';
export {
  addPanelScores,
  addScores,
  noScores,
  RELIABILITY_BINS,
  type ScoreSums,
  SQUARED_ENTROPY_UNIT,
  scoreSums,
} from './score-pixels.js';
