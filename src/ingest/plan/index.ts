/**
 * Which cells, pixel sizes and passes a scene needs, before a pixel is read. Invariant: the first scene of a collection fixes its cells;
 * later scenes follow it. Imports files of a folder above, the folder `georeferencing` and the parts `grid`, `query`, `raster` and
 * `storage` (types).
 */
export { type CutPass, isCubeGroup, planCutPasses } from './plan-cut-passes.js';
export { coverScene, overlapsRegion } from './plan-scene-cells.js';
export { groupPixelGrids, planInCollection, planSceneTiles, type ScenePlan } from './plan-scene-tiles.js';
export { type RowRange, sourceRowsForCell, sourceWindowForCell } from './plan-source-window.js';
export { addRegion, isRegionKnown, regionFilter } from './region-cells.js';
