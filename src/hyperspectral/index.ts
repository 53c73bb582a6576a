/**
 * Analyses of spectra as batch jobs on the nodes that own the tiles: statistics, components, detection, unmixing, classification.
 * `processes` has one file for each analysis; the other folders are its layers, from `spectrum-reading` to `classifier-registry`.
 * Invariant: results have the same bits on any distribution of the tiles over nodes. Imports the parts `async`, `derive`, `engines`,
 * `expressions`, `grid`, `html`, `imagery`, `ingest`, `jobs` (types), `query`, `raster`, `storage` and `training`.
 */

export { readLabels } from './class-labels/index.js';
export type { ClassifyInputs } from './classification/index.js';
export { CLASSIFIER, type ClassifierCard } from './classifier-registry/index.js';
export { HyperspectralPool } from './hyperspectral-pool.js';
export type { AnalysisContext, AnalysisInputs } from './jobs/index.js';
export {
  type AnomalyInputs,
  type AnomalyResults,
  applyClassifier,
  type ClassifyResults,
  type ClusterInputs,
  type ClusterResults,
  type ComponentsInputs,
  type ComponentsResults,
  type ContinuumInputs,
  type ContinuumResults,
  continuumRemovalProcess,
  type IndicesInputs,
  type IndicesResults,
  MATCH_METHODS,
  type MatchInputs,
  type MatchResults,
  mnfProcess,
  pcaProcess,
  type ResampleInputs,
  type ResampleResults,
  type SmoothInputs,
  type SmoothResults,
  type StatsResults,
  spectralAnomalyProcess,
  spectralClassificationProcess,
  spectralClusteringProcess,
  spectralIndicesProcess,
  spectralMatchingProcess,
  spectralResamplingProcess,
  spectralSmoothingProcess,
  spectralStatisticsProcess,
  spectralUnmixingProcess,
  type UnmixInputs,
  type UnmixResults,
} from './processes/index.js';
export { NARROW_BAND_INDICES, type NarrowBandIndex, readSensor, SENSOR_NAMES } from './spectra/index.js';
export { patchSide } from './spectral-cnn/index.js';
export { readLibrary } from './spectral-library/index.js';
export { type MapResults, mapProcess } from './spectral-maps/index.js';
