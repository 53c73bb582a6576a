/**
 * Analyses of spectra as batch jobs on the nodes that own the tiles: statistics, components, detection, unmixing, classification.
 * `analyses` has one file for each analysis, `analysis.ts` the steps that they share. Invariant: results have the same bits on any
 * distribution of the tiles over nodes. Imports the parts `async`, `derive`, `engines`, `expressions`, `grid`, `html`, `imagery`, `ingest`,
 * `jobs` (types), `query`, `raster`, `storage` and `training`.
 */

export type { AnomalyResults } from './analyses/anomalies.js';
export { applyClassifier } from './analyses/apply-classifier.js';
export type { ClassifyResults } from './analyses/classification.js';
export type { ClusterResults } from './analyses/clustering.js';
export type { ContinuumResults } from './analyses/continuum-removal.js';
export { type IndicesResults, NARROW_BAND_INDICES } from './analyses/indices.js';
export type { MatchInputs, MatchResults } from './analyses/matching.js';
export type { ComponentsResults } from './analyses/pca-mnf.js';
export type { ResampleResults } from './analyses/resampling.js';
export { type ScoreClassifierResults, scoreClassifierProcess } from './analyses/score-classifier.js';
export type { SmoothInputs, SmoothResults } from './analyses/smoothing.js';
export type { StatsResults } from './analyses/statistics.js';
export type { UnmixInputs, UnmixResults } from './analyses/unmixing.js';
export { HyperspectralPool } from './analysis.js';
export type { ClassifyInputs } from './classification/fit.js';
export { CLASSIFIER, type ClassifierCard } from './classification/stored-classifier.js';
export { patchSide } from './cnn/net.js';
export { readLabels } from './labels.js';
export { readLibrary } from './library.js';
export type { MapResults } from './map-analysis.js';
export { spectralProcesses } from './processes.js';
export { readSensor, SENSOR_NAMES } from './sensors.js';
