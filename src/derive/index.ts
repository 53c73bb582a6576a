/**
 * Derived tiles: gap filling, splitting, coalescing, and tensors. `deriveTiles` plans, skips tiles that are up to date, makes tiles in
 * worker threads and commits them in batches; the parts training and analysis use it too. Invariant: a derived tile identifies the versions
 * of its inputs. Imports the parts `async`, `expressions`, `grid`, `ingest`, `jobs`, `query`, `raster` and `storage`.
 */

export type { MadeTile, NewTile } from './derive-tasks.js';
export { tilesOutOfReach } from './errors.js';
export { DerivePool } from './jobs/derive-pool.js';
export {
  coalesceProcess,
  DERIVE_RESULTS,
  type DeriveResults,
  derivedProperties,
  deriveTiles,
  type ExportResults,
  exportProcess,
  fillProcess,
  findNeighbourTiles,
  type NeighbourTile,
  type PlannedDerivation,
  RESUMABLE_PROCESS,
  searchAllTiles,
  searchTilePages,
  searchTilesOfCell,
  selectedTiles,
  splitProcess,
  type TensorFile,
  type TensorResults,
  type TileDerivation,
  type TileMaker,
  tensorProcess,
} from './jobs/index.js';
export { npyHead } from './tensors/index.js';
export { conversion, validityStatistics } from './tiles/index.js';
