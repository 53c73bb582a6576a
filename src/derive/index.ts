export { WrangleWorkers } from './derive-pool.js';
export type { MadeTile, NewTile } from './derive-tasks.js';
export { tilesOutOfReach } from './errors.js';
export { type CoalesceInputs, coalesceProcess } from './jobs/coalesce-process.js';
export {
  type Derivation,
  type DeriveContext,
  derive,
  mergeSkipped,
  type Planned,
  REPEATABLE,
  type TileMaker,
  WRANGLE_PART,
  type WrangleResults,
} from './jobs/derive-tiles.js';
export { type FillInputs, fillProcess } from './jobs/fill-process.js';
export { foundPages, foundTiles, pickedTiles, tilesOfCell } from './jobs/selected-tiles.js';
export { type SplitInputs, splitProcess } from './jobs/split-process.js';
export { type TensorInputs, type TensorResults, tensorProcess } from './jobs/tensor-process.js';
export { npyHead } from './tensors/npy.js';
export type { TensorFile } from './tensors/write-tensor.js';
export { conversion } from './tiles/gap-filling.js';
export { validOf } from './tiles/valid-percent.js';
