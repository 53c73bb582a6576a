/**
 * Analyses of spectra as batch jobs on the nodes that own the tiles: statistics, components, detection, unmixing, classification. `analyses`
 * has one file for each process; the other folders are its layers, from `tile-reading` to `classifier-registry`. Invariant: results have the
 * same bits on any distribution of the tiles over nodes. Imports the parts async, derive, engines, expressions, grid, html, imagery, ingest,
 * jobs, query, raster, storage and training.
 */

export { type AnomalyInputs, type AnomalyResults, anomaly } from './analyses/anomaly.js';
export { applyClassifier } from './analyses/apply-classifier.js';
export { type ClassifyResults, classify } from './analyses/classify.js';
export { type ClusterInputs, type ClusterResults, clustering } from './analyses/cluster.js';
export { type ContinuumInputs, type ContinuumResults, continuum } from './analyses/continuum.js';
export { type IndicesInputs, type IndicesResults, indices } from './analyses/indices.js';
export { MATCH_METHODS, type MatchInputs, type MatchResults, spectralMatching } from './analyses/match.js';
export { type ComponentsInputs, type ComponentsResults, mnf, pca } from './analyses/pca-mnf.js';
export { type ResampleInputs, type ResampleResults, spectralResampling } from './analyses/resample.js';
export { type SmoothInputs, type SmoothResults, smooth } from './analyses/smooth.js';
export { type StatsResults, statsProcess } from './analyses/stats.js';
export { type UnmixInputs, type UnmixResults, unmix } from './analyses/unmix.js';
export { AnalysisPool } from './analysis-pool.js';
export type { ClassifyInputs } from './classification/classify-inputs.js';
export { CLASSIFIER, type ClassifierCard } from './classifier-registry/classifier-card.js';
export { patchSide } from './convolutional-networks/network-specs.js';
export type { AnalysisInputs } from './jobs/analysis-inputs.js';
export type { AnalysisContext } from './jobs/analysis-run.js';
export { readLabels } from './labels/read-labels.js';
export { type MapResults, mapProcess } from './map-jobs/map-process.js';
export { NARROW_BAND_INDICES, type NarrowBandIndex } from './spectra/narrow-band-indices.js';
export { readSensor } from './spectra/read-sensor.js';
export { SENSOR_NAMES } from './spectra/sensors.js';
export { readLibrary } from './spectral-library/read-library.js';
