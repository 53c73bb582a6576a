/**
 * The analyses, one file for each process: inputs, the fit, and the conclusions. Imports the folders classification, classifier-registry,
 * convolutional-networks, dense-networks, jobs, labels, map-jobs, numeric, output-tiles, passes, pixel-methods, report, reproducible-sums,
 * spectra, spectral-library, tile-reading and transforms and the parts derive, expressions, html, jobs, query, raster and storage.
 */
export { type AnomalyInputs, type AnomalyResults, anomaly } from './anomaly-detection-process.js';
export { applyClassifier } from './apply-classifier-process.js';
export { type ClassifyResults, classify } from './classify-process.js';
export { type ContinuumInputs, type ContinuumResults, continuum } from './continuum-removal-process.js';
export { type ComponentsInputs, type ComponentsResults, mnf, pca } from './pca-mnf-process.js';
export { type ClusterInputs, type ClusterResults, clustering } from './spectral-clustering-process.js';
export { type IndicesInputs, type IndicesResults, indices } from './spectral-indices-process.js';
export {
  MATCH_METHODS,
  type MatchInputs,
  type MatchResults,
  spectralMatching,
} from './spectral-matching-process.js';
export {
  type ResampleInputs,
  type ResampleResults,
  spectralResampling,
} from './spectral-resampling-process.js';
export { type SmoothInputs, type SmoothResults, smooth } from './spectral-smoothing-process.js';
export { type StatsResults, statsProcess } from './spectral-statistics-process.js';
export { type UnmixInputs, type UnmixResults, unmix } from './spectral-unmixing-process.js';
