/** Squares of a control grid: the pixels between four of its points, `step` x `step`, fewer at the right and lower edges. */

import type { Window } from '../raster.js';
import type { ControlGrid } from './control-grid.js';

/**
 * Far above the noise of projections and far below real differences, so that a pixel centre on an edge belongs to the
 * right-hand pixel.
 */
export const PIXEL_EPSILON = 1e-10;

/** State of the squares of a grid over a window of pixels, row by row. */
export interface GridSquares {
  /** 1 if each pixel lies between the centres of four pixels of the window, so that the edges need no checks. */
  interior: Uint8Array;
  /** A bit for each row of pixels of a square, from the lowest bit on: the row holds no data. */
  outside: Int32Array;
  /** A bit for each row: the row is not interpolated yet. */
  pending: Int32Array;
  /** Position of the grid points from the centre of the window's first pixel, in integers of 1 / `SUBPIXEL_ONE` pixel. */
  x: Float64Array;
  y: Float64Array;
  /** The pixels of the window that interior squares need. */
  sourceBounds: { left: number; top: number; right: number; bottom: number };
}

/** The WebAssembly kernel counts positions along a row in 2 ** -20 of a source pixel: adding integers is fast. */
export const SUBPIXEL_ONE = 2 ** 20;

/** The longest way across a square, in source pixels, that the kernel can count in 32 bits. */
const MAX_SQUARE_SPAN = 2000;
/** Larger than the rounding of positions. */
const POSITION_TOLERANCE = 0.01;

/** A copy whose `outside` and `pending` the kernels may change. */
export function cloneForWarp(squares: GridSquares): GridSquares {
  return { ...squares, outside: squares.outside.slice(), pending: squares.pending.slice() };
}

/** Rows of squares beyond the window are outside, all others are pending. */
export function prepareSquares(grid: ControlGrid, { column, row, width, height }: Window): GridSquares {
  const { step, columns } = grid;
  const size = (columns - 1) * (grid.rows - 1);
  const interior = new Uint8Array(size);
  const outside = new Int32Array(size);
  const pending = new Int32Array(size);
  const sourceBounds = { left: width, top: height, right: 0, bottom: 0 };
  const across: Span = { low: 0, high: 0 };
  const down: Span = { low: 0, high: 0 };
  for (let j = 0, square = 0; j < grid.rows - 1; j++) {
    const partDown = (Math.min(step, grid.height - j * step) - 1) / step;
    for (let i = 0; i < columns - 1; i++, square++) {
      const partAcross = (Math.min(step, grid.width - i * step) - 1) / step;
      const node = j * columns + i;
      cornerRange(grid.x, node, columns, partAcross, partDown, across);
      cornerRange(grid.y, node, columns, partAcross, partDown, down);
      const left = across.low - column - 0.5;
      const right = across.high - column - 0.5;
      const top = down.low - row - 0.5;
      const bottom = down.high - row - 0.5;
      if (right < -1 || bottom < -1 || left > width || top > height) outside[square] = -1;
      else pending[square] = -1;
      const inside =
        left >= POSITION_TOLERANCE &&
        top >= POSITION_TOLERANCE &&
        right < width - 1 - POSITION_TOLERANCE &&
        bottom < height - 1 - POSITION_TOLERANCE;
      if (!inside || right - left + bottom - top >= MAX_SQUARE_SPAN) continue;
      interior[square] = 1;
      sourceBounds.left = Math.min(sourceBounds.left, Math.floor(left - POSITION_TOLERANCE));
      sourceBounds.top = Math.min(sourceBounds.top, Math.floor(top - POSITION_TOLERANCE));
      sourceBounds.right = Math.max(sourceBounds.right, Math.floor(right + POSITION_TOLERANCE) + 2);
      sourceBounds.bottom = Math.max(sourceBounds.bottom, Math.floor(bottom + POSITION_TOLERANCE) + 2);
    }
  }
  const x = grid.x.map((position) => Math.floor((position - column - 0.5) * SUBPIXEL_ONE + 0.5));
  const y = grid.y.map((position) => Math.floor((position - row - 0.5) * SUBPIXEL_ONE + 0.5));
  return { interior, outside, pending, x, y, sourceBounds };
}

interface Span {
  low: number;
  high: number;
}

/** Writes the lowest and the highest position of a square's four corner pixels to `into`; NaN if a grid point is NaN. */
function cornerRange(
  nodes: Float64Array,
  node: number,
  columns: number,
  across: number,
  down: number,
  into: Span,
): void {
  const start = nodes[node];
  const upper = start + (nodes[node + 1] - start) * across;
  const left = lerpRows(nodes, node, columns, down);
  const right = lerpRows(nodes, node + 1, columns, down);
  const lower = left + (right - left) * across;
  into.low = Math.min(start, upper, left, lower);
  into.high = Math.max(start, upper, left, lower);
}

/** Interpolates between a grid point and the one below it. */
export function lerpRows(nodes: Float64Array, node: number, columns: number, part: number): number {
  const above = nodes[node];
  return above + (nodes[node + columns] - above) * part;
}
