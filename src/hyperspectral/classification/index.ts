/**
 * Fits classifiers to labelled spectra, selects one by cross entropy on tuning pixels, validates and describes it. Invariant: validation
 * pixels have no part in fitting or selection of the scored classifier. Imports the folders `class-labels`, `collection-passes`,
 * `dense-network-training`, `jobs`, `numeric`, `pixel-methods`, `report`, `spectral-cnn`, `spectral-maps` (types), `spectrum-reading`
 * (types), `training-samples` and `transforms` and the parts `grid` (types), `html`, `jobs` (types), `query` and `storage` (types).
 */
export type { AccuracyScores } from './classification-accuracy.js';
export type { LabelledTileFacts } from './classification-dataset.js';
export { CLASSIFY_PROPERTIES, type ClassifyInputs, requestedNetwork } from './classification-inputs.js';
export {
  CLASSIFY_FIT,
  type ClassifyFit,
  type ComparedClassifier,
  classBandName,
  fitMap,
  withCodes,
} from './classification-map.js';
export { type Calibration, isBaseline, validated } from './classification-model-selection.js';
export { classSections, trainingText } from './classification-sections.js';
export type { BandWeights, TrainingFacts } from './classification-training-facts.js';
export type { ClassifierName } from './fit-classifier.js';
export { checkSplit, sortedByWavelength, withTrainingData } from './load-classification-dataset.js';
