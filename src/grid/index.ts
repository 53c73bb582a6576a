/**
 * Grids of cells: geohash (EPSG:4326) and quadtile (EPSG:3857), their codes and bounds, coverings of regions, and the pixel grid of a cell.
 * Invariant: neighbouring cells share their edges bit for bit, and the pixel grid of a cell depends only on the cell and the pixel sizes of
 * its collection. Does no I/O. Imports no other folder.
 */

export type { Bbox, Grid, GridBounds, GridName } from './grid.js';
export { cellBbox } from './grid.js';
export { type CellParts, DividedCell, parseParts, partsWithData } from './parts.js';
export {
  cellSizeMetres,
  chordDistanceMetres,
  computePixelGrids,
  defaultPrecision,
  matchPixelSizes,
  nominalSizeMetres,
  type PixelGrid,
  type PixelSize,
  type PixelSizes,
  pixelGridsFor,
  shareOfCell,
} from './pixels.js';
export { coverRegionByRelation, type Relation } from './region-coverer.js';
export { geohash, gridByName, grids, quadtile } from './regular-grid.js';
