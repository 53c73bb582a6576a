/**
 * Steps that all analyses share: inputs, the agreement of all nodes on the bands, and the loop over tiles. Invariant: a tile that fails is
 * reported and does not stop the others. Imports files of a folder above (types), the folder `spectrum-reading` and the parts `async`,
 * `derive`, `expressions`, `imagery` (types), `jobs` (types), `query` and `storage`.
 */
export {
  ANALYSIS_PROPERTIES,
  type AnalysisInputs,
  checkAnalysis,
  collectionOf,
  DEFAULT_SEED,
  integer,
  SEED,
} from './spectral-job-inputs.js';
export {
  type AnalysedCollection,
  type AnalysisContext,
  agreeOnBands,
  allGatherChecked,
  BANDS_SCHEMA,
  forEachTile,
  requireOneSize,
  selectBands,
} from './spectral-job-run.js';
export { NO_PIXEL, NO_SPECTRUM, requireTiles } from './spectral-job-tiles.js';
