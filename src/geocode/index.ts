export { cellBbox, coverPolygon } from './cover.js';
export { coverRegion, type Relation } from './cover-region.js';
export { geohash } from './geohash.js';
export type { Bbox, Bounds, Grid, GridName } from './grid.js';
export { gridByName, grids } from './grids.js';
export { groundDistance, groundSize, metresPerDegree } from './ground.js';
export { type PixelGrid, pixelGrids } from './pixel-grid.js';
export { defaultPrecision } from './precision.js';
export { quadtile } from './quadtile.js';
