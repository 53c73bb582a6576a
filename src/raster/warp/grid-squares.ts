/** Squares of a control grid: the pixels between four of its nodes, `step` x `step`, fewer at the right and lower edges. */

import type { Window } from '../types.js';
import type { ControlGrid } from './control-grid.js';

/** Noise of projections is far below, real differences are far above: a pixel centre on an edge goes to the right pixel. */
export const PIXEL_EPSILON = 1e-10;

/** What is known of the squares of a grid over a window of pixels, row by row. */
export interface GridSquares {
  /** 1 where each pixel lies between the centres of four pixels of the window, so that its edges need not be looked for. */
  interior: Uint8Array;
  /** A bit for each row of pixels of each square, from the lowest on: that row holds no data. */
  outside: Int32Array;
  /** Likewise: the row is yet to be interpolated. */
  pending: Int32Array;
  /**
   * Where the nodes lie, from the centre of the window's first pixel on: whole numbers of `UNIT`. So the kernels reckon
   * without rounding, and agree to the last bit.
   */
  x: Float64Array;
  y: Float64Array;
  /** The pixels of the window that interior squares need. */
  sourceBounds: { left: number; top: number; right: number; bottom: number };
}

/** Positions along a row of pixels are counted in 2 ** -20 of a source pixel: adding integers is fast. */
export const SUBPIXEL_ONE = 2 ** 20;

/** The longest way across a square, in source pixels: positions along it are counted in 2 ** -20 of them, in 32 bits. */
export const MAX_SQUARE_SPAN = 2000;
/** More than what rounding does to positions. */
export const POSITION_TOLERANCE = 0.01;

/** The same squares, of which the kernels may change what is blank and to do. */
export function cloneForWarp(squares: GridSquares): GridSquares {
  return { ...squares, outside: squares.outside.slice(), pending: squares.pending.slice() };
}

/** Squares beyond the window are blank, all rows of others are yet to do. */
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

/** Puts the lowest and the highest position of a square's four corner pixels into `into`; NaN where a node is. */
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

/** Between a node and the one below it. */
export function lerpRows(nodes: Float64Array, node: number, columns: number, part: number): number {
  const above = nodes[node];
  return above + (nodes[node + columns] - above) * part;
}
