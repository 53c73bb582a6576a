/**
 * The processes `fill`, `split`, `coalesce`, `tensor` and `export`, and the loop that they share: select tiles, plan, derive, commit.
 * Invariant: a run can be repeated, and then makes only missing or stale tiles. Imports files of a folder above (types), the folders
 * `tensors` and `tiles` and the parts `async`, `grid`, `jobs`, `query`, `raster` and `storage`.
 */
export { coalesceProcess } from './derive-coalesce-process.js';
export { fillProcess } from './derive-fill-process.js';
export { searchAllTiles, searchTilePages, searchTilesOfCell, selectedTiles } from './derive-job-tiles.js';
export { findNeighbourTiles, type NeighbourTile } from './derive-neighbour-tiles.js';
export { DERIVE_RESULTS, RESUMABLE_PROCESS } from './derive-process.js';
export { splitProcess } from './derive-split-process.js';
export { type TensorResults, tensorProcess } from './derive-tensor-process.js';
export {
  type DeriveResults,
  derivedProperties,
  deriveTiles,
  type PlannedDerivation,
  type TileDerivation,
  type TileMaker,
} from './derive-tiles-job.js';
export { type ExportResults, exportProcess } from './export-image-process.js';
export type { TensorFile } from './write-tensor-job.js';
