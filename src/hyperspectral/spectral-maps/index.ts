/**
 * Analyses that make a map of each tile, as jobs: fit, derivation of the maps, report. Invariant: a map whose tile and fit are unchanged is
 * not made again. Imports the folders convolutional-networks, jobs, numeric, output-tiles, pixel-methods, report and tile-reading and the
 * parts derive, jobs, query, raster and storage.
 */
export { deriveMaps, type FittedMap, type MapMethod, mapDerivation } from './derive-spectral-maps.js';
export {
  type Conclusion,
  type FittedAnalysis,
  type MapAnalysis,
  type MapResults,
  mapProcess,
} from './spectral-map-job.js';
