/**
 * Resamples onto another grid: a control grid of exact positions, and nearest-neighbour or bilinear interpolation between its points.
 * Invariant: an interpolated position errs by less than 0.0005 source pixels. Imports files of a folder above (types), the folders `crs`
 * and `pixels` and the part `grid` (types).
 */

export { sourceExtent, type WarpSource, warp } from './warp.js';
export { buildControlGrid, type ControlGrid, sliceRows, type WarpTarget } from './warp-control-grid.js';
export { warpMasked } from './warp-masked.js';
