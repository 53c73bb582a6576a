/** Analyses of spectra as batch jobs, where the tiles are: exact sums over all tiles, what follows from them, and maps. */
export type { AnalysisContext, TileCounts } from './analysis-run.js';
export {
  type ComponentsInputs,
  type ComponentsResults,
  componentsProcess,
  MNF,
  PCA,
} from './components-process.js';
export type { AnalysisInputs } from './inputs.js';
export { type StatsResults, statsProcess } from './stats-process.js';
export { AnalysisWorkers } from './workers.js';
