/**
 * Grids of cells: geohash (EPSG:4326) and quadtile (EPSG:3857), their codes and bounds, coverings of regions, and the pixel grid of a cell.
 * Invariant: neighbouring cells share their edges bit for bit, and the pixel grid of a cell depends only on the cell and the pixel sizes of
 * its collection. Does no I/O. Imports no other folder.
 */

export { cellBbox } from './cell-bbox.js';
export { geohash } from './geohash.js';
export type { Bbox, Grid, GridBounds, GridName } from './grid.js';
export { computePixelGrids, type PixelGrid } from './grid-cell-pixels.js';
export { defaultPrecision } from './grid-cell-precision.js';
export { cellSizeMetres, chordDistanceMetres } from './grid-ellipsoid.js';
export { matchPixelSizes, type PixelSize, type PixelSizes, pixelGridsFor } from './grid-pixel-sizes.js';
export { gridByName, grids } from './grid-registry.js';
export { quadtile } from './quadtile.js';
export { coverRegionByRelation, type Relation } from './region-coverer.js';
