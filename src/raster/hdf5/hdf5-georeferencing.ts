/** Georeferencing of the grid of a dataset. */
import type { Affine, Crs } from '../raster-types.js';

export interface Georeferencing {
  crs: Crs;
  /** Transform of the rows from north to south, even if the file stores them from south to north. */
  transform: Affine;
  /** True if the first stored row is the southernmost. */
  bottomUp: boolean;
}

/** The georeferencing of a grid: the outer edges of the first column and row, and the steps between columns and rows. */
export function gridGeoreferencing(crs: Crs, x: AxisOrigin, y: AxisOrigin, rows: number): Georeferencing {
  const bottomUp = y.step > 0;
  const north = bottomUp ? y.start + y.step * rows : y.start;
  const transform = { originX: x.start, originY: north, xx: x.step, xy: 0, yx: 0, yy: -Math.abs(y.step) };
  return { crs, transform, bottomUp };
}

/** Outer edge of the first column or row as stored, and the signed size of one. */
export interface AxisOrigin {
  start: number;
  step: number;
}
