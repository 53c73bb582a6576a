/** Where the grid of a dataset lies. */
import type { Affine, Crs } from '../types.js';

export interface Position {
  crs: Crs;
  /** Of the rows from north to south, whatever their order in the file. */
  transform: Affine;
  /** The first stored row is the southernmost. */
  upsideDown: boolean;
}

/** The position of a grid by its outer edges: the first column's and row's, and the steps between columns and rows. */
export function gridPosition(crs: Crs, x: Edge, y: Edge, rows: number): Position {
  const upsideDown = y.step > 0;
  const north = upsideDown ? y.start + y.step * rows : y.start;
  const transform = { originX: x.start, originY: north, xx: x.step, xy: 0, yx: 0, yy: -Math.abs(y.step) };
  return { crs, transform, upsideDown };
}

/** Outer edge of the first column or row as stored, and the signed size of one. */
export interface Edge {
  start: number;
  step: number;
}
