/**
 * Derived tiles: gap filling, splitting, coalescing, and tensors. `deriveTiles` plans, skips tiles that are up to date, makes tiles in
 * worker threads and commits them in batches; the parts training and analysis use it too. Invariant: a derived tile identifies the versions
 * of its inputs. Imports the parts `async`, `expressions`, `grid`, `ingest`, `jobs`, `query`, `raster` and `storage`.
 */

export { coalesceProcess } from './coalesce.js';
export { tilesOutOfReach } from './errors.js';
export { type ExportResults, exportProcess } from './export.js';
export { fillProcess } from './fill.js';
export { conversion } from './gaps.js';
export {
  DERIVE_RESULTS,
  DerivePool,
  type DeriveResults,
  derivedProperties,
  deriveTiles,
  type PlannedDerivation,
  RESUMABLE_PROCESS,
  type TileDerivation,
  type TileMaker,
} from './job.js';
export {
  findNeighbourTiles,
  type NeighbourTile,
  searchAllTiles,
  searchTilePages,
  searchTilesOfCell,
  selectedTiles,
} from './selection.js';
export { splitProcess } from './split.js';
export type { MadeTile, NewTile } from './tasks.js';
export { npyHead, type TensorFile, type TensorResults, tensorProcess } from './tensor.js';
export { DILATION_SCHEMA } from './tile.js';
