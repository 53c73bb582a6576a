export { type CoalesceInputs, coalesceProcess } from './coalesce-process.js';
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
} from './derive.js';
export { tilesOutOfReach } from './errors.js';
export { validOf } from './figures.js';
export { type FillInputs, fillProcess } from './fill-process.js';
export { npyHead } from './npy.js';
export { foundPages, foundTiles, pickedTiles, tilesOfCell } from './picked-cells.js';
export { conversion } from './splice.js';
export { type SplitInputs, splitProcess } from './split-process.js';
export type { MadeTile, NewTile } from './tasks.js';
export type { TensorFile } from './tensor-file.js';
export { type TensorInputs, type TensorResults, tensorProcess } from './tensor-process.js';
export { WrangleWorkers } from './workers.js';
