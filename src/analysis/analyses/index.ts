/**
 * The analyses, one file for each process: inputs, the fit, and the conclusions. Imports the folders classification, classifier-registry,
 * convolutional-networks, dense-networks, jobs, labels, map-jobs, numeric, output-tiles, passes, pixel-methods, report, reproducible-sums,
 * spectra, spectral-library, tile-reading and transforms and the parts derive, expressions, html, jobs, query, raster and storage.
 */
export { type AnomalyInputs, type AnomalyResults, anomaly } from './anomaly.js';
export { applyClassifier } from './apply-classifier.js';
export { type ClassifyResults, classify } from './classify.js';
export { type ClusterInputs, type ClusterResults, clustering } from './cluster.js';
export { type ContinuumInputs, type ContinuumResults, continuum } from './continuum.js';
export { type IndicesInputs, type IndicesResults, indices } from './indices.js';
export { MATCH_METHODS, type MatchInputs, type MatchResults, spectralMatching } from './match.js';
export { type ComponentsInputs, type ComponentsResults, mnf, pca } from './pca-mnf.js';
export { type ResampleInputs, type ResampleResults, spectralResampling } from './resample.js';
export { type SmoothInputs, type SmoothResults, smooth } from './smooth.js';
export { type StatsResults, statsProcess } from './stats.js';
export { type UnmixInputs, type UnmixResults, unmix } from './unmix.js';
