/**
 * Which cells, pixel sizes and passes a scene needs, before a pixel is read. Invariant: the first scene of a collection fixes
 * its cells; later scenes follow it. May import georeferencing, grid, raster and storage.
 */
export { type CutPass, isCubeGroup, planCutPasses } from './cut-passes.js';
export { coverScene } from './scene-cells.js';
export { groupPixelGrids, planSceneTiles, type ScenePlan } from './scene-plan.js';
export { type RowRange, sourceRowsForCell } from './source-rows.js';
