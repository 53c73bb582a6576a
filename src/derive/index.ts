/**
 * Derived tiles: gap filling, splitting, coalescing, and tensors. `deriveTiles` plans, skips tiles that are up to date, makes tiles in worker
 * threads and commits them in batches; the parts training and analysis use it too. Invariant: a derived tile identifies the versions of its
 * inputs. Imports the parts async, expressions, grid, ingest, jobs, query, raster and storage.
 */

export { DerivePool } from './derive-pool.js';
export type { MadeTile, NewTile } from './derive-tasks.js';
export { tilesOutOfReach } from './errors.js';
export { type CoalesceInputs, coalesceProcess } from './jobs/coalesce-process.js';
export {
  DERIVE_RESULTS,
  type DeriveContext,
  type DeriveResults,
  deriveTiles,
  type PlannedDerivation,
  RESUMABLE_PROCESS,
  type TileDerivation,
  type TileMaker,
} from './jobs/derive-tiles.js';
export { type FillInputs, fillProcess } from './jobs/fill-process.js';
export { searchAllTiles, searchTilePages, searchTilesOfCell, selectedTiles } from './jobs/selected-tiles.js';
export { type SplitInputs, splitProcess } from './jobs/split-process.js';
export { type TensorInputs, type TensorResults, tensorProcess } from './jobs/tensor-process.js';
export {
  addFailure,
  addFetched,
  addSkipped,
  emptyCounts,
  firstReasons,
  mergeCounts,
  TILE_COUNTS_SCHEMA,
  type TileCounts,
} from './jobs/tile-counts.js';
export { npyHead } from './tensors/npy.js';
export type { TensorFile } from './tensors/write-tensor.js';
export { conversion } from './tiles/gap-filling.js';
export { validityStatistics } from './tiles/valid-percent.js';
