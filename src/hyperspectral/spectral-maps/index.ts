/**
 * Analyses that make a map of each tile, as jobs: fit, derivation of the maps, report. Invariant: a map whose tile and fit are unchanged is
 * not made again. Imports the folders `jobs`, `numeric`, `output-tiles` (types), `pixel-methods` (types), `report`, `spectral-cnn` and
 * `spectrum-reading` and the parts `derive`, `jobs` (types), `query`, `raster` and `storage` (types).
 */
export { deriveMaps, type FittedMap, type MapMethod, mapDerivation } from './derive-spectral-maps.js';
export {
  type Conclusion,
  type FittedAnalysis,
  type MapAnalysis,
  type MapResults,
  mapProcess,
} from './spectral-map-job.js';
