/**
 * The analyses, one file for each process: inputs, the fit, and the conclusions. Imports the folders `class-labels`, `classification`,
 * `classifier-registry`, `collection-passes`, `jobs`, `numeric`, `output-tiles` (types), `pixel-methods`, `report`, `reproducible-sums`,
 * `spectra`, `spectral-cnn`, `spectral-library`, `spectral-maps`, `spectrum-reading` (types) and `transforms` (types) and the parts
 * `derive`, `expressions`, `html`, `jobs` (types), `query`, `raster` and `storage` (types).
 */

export { applyClassifier } from './apply-spectral-classifier-process.js';
export { type ContinuumResults, continuumRemovalProcess } from './continuum-removal-process.js';
export { type AnomalyResults, spectralAnomalyProcess } from './spectral-anomaly-process.js';
export { type ClassifyResults, spectralClassificationProcess } from './spectral-classification-process.js';
export { type ClusterResults, spectralClusteringProcess } from './spectral-clustering-process.js';
export { type IndicesResults, spectralIndicesProcess } from './spectral-indices-process.js';
export { type MatchInputs, type MatchResults, spectralMatchingProcess } from './spectral-matching-process.js';
export { type ComponentsResults, mnfProcess, pcaProcess } from './spectral-pca-mnf-process.js';
export { type ResampleResults, spectralResamplingProcess } from './spectral-resampling-process.js';
export {
  type SmoothInputs,
  type SmoothResults,
  spectralSmoothingProcess,
} from './spectral-smoothing-process.js';
export { type StatsResults, spectralStatisticsProcess } from './spectral-statistics-process.js';
export { spectralUnmixingProcess, type UnmixInputs, type UnmixResults } from './spectral-unmixing-process.js';
