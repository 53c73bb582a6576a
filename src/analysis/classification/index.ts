/**
 * Fits classifiers to labelled spectra, selects one by cross entropy on tuning pixels, validates and describes it. Invariant: validation
 * pixels have no part in fitting or selection of the scored classifier. Imports the folders convolutional-networks, dense-networks, jobs,
 * labels, map-jobs, numeric, passes, pixel-methods, report, training-samples and transforms and the parts grid, html, jobs, query and
 * storage.
 */
export type { AccuracyScores } from './accuracy.js';
export {
  CLASSIFY_FIT,
  type ClassifyFit,
  type ComparedClassifier,
  classBandName,
  fitMap,
  withCodes,
} from './class-map.js';
export {
  CLASSIFY_PROPERTIES,
  type ClassifyInputs,
  DEFAULT_CLASSIFY_SEED,
  requestedNetwork,
} from './classify-inputs.js';
export type { ClassifierName } from './fit-classifier.js';
export { checkSplit, sortedByWavelength, withTrainingData } from './load-training-data.js';
export { type Calibration, isBaseline, validated } from './model-selection.js';
export { classSections, trainingText } from './report-sections.js';
export type { LabelledTileFacts } from './training-data.js';
export type { BandWeights, TrainingFacts } from './training-facts.js';
