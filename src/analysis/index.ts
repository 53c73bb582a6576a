/** Analyses of spectra as batch jobs, where the tiles are: exact sums over all tiles, what follows from them, and maps. */
export type { AnalysisContext, TileCounts } from './analysis-run.js';
export { type AnomalyInputs, type AnomalyResults, anomaly } from './anomaly.js';
export { type ClassifyInputs, type ClassifyResults, classify } from './classify.js';
export { type ClusterInputs, type ClusterResults, clustering } from './cluster.js';
export { type ComponentsInputs, type ComponentsResults, mnf, pca } from './components.js';
export type { AnalysisInputs } from './inputs.js';
export { readLabels } from './labels/read-labels.js';
export { readLibrary } from './library/read-library.js';
export { type MapResults, mapProcess } from './map-process.js';
export { MATCH_METHODS, type MatchInputs, type MatchResults, match } from './match.js';
export { type StatsResults, statsProcess } from './stats-process.js';
export { type UnmixInputs, type UnmixResults, unmix } from './unmix.js';
export { AnalysisWorkers } from './workers.js';
