/** Bilinear interpolation over the squares of a control grid. Each data type gets its own copy: see typed-kernels.ts. */

import type { SourceWindow } from '../pixels/kernels.js';
import type { PixelArray } from '../types.js';
import type { ControlGrid } from './control-grid.js';
import {
  type GridSquares,
  lerpRows,
  MAX_SQUARE_SPAN,
  PIXEL_EPSILON,
  POSITION_TOLERANCE,
  SUBPIXEL_ONE,
} from './grid-squares.js';

/** Pixels of 8 and 16 bits: half a unit of the weights, of 14 bits along a row and 13 between rows, so that these are rounded. */
const ROUNDING_ALONG = 2 ** 5;
const ROUNDING_DOWN = 2 ** 6;

/**
 * Mean of the four pixels around a point, weighted by distance; pixels without data are left out. A point holds data where its
 * nearest pixel does. `round` for integers. A mean that happens to equal the hole becomes `nodataReplacement`. Else as `nearest`.
 * Only rows of squares that are `blank` or yet `todo` are written; all pixels of others count as data.
 */
export function bilinear(
  { pixels, width, height, column, row, nodata }: SourceWindow,
  grid: ControlGrid,
  { interior, outside, pending, x: unitsX, y: unitsY }: GridSquares,
  out: PixelArray,
  valid: Uint8Array,
  fillValue: number,
  round: boolean,
  nodataReplacement: number,
): number {
  const { step, columns, x: nodesX, y: nodesY } = grid;
  const small = round && pixels.BYTES_PER_ELEMENT <= 2;
  const halfAlong = small ? ROUNDING_ALONG : 0;
  const halfDown = small ? ROUNDING_DOWN : 0;
  /** Bits that are added to 8-bit pixels, so that they fill 16. */
  const scale = pixels.BYTES_PER_ELEMENT === 1 ? 8 : 0;
  const places = 14 + scale;
  const half = 1 << (places - 1);
  /** As a whole number; one that no such pixel has where there is no hole. */
  const wholeHole = Number.isNaN(nodata) ? -(2 ** 30) : nodata | 0;
  // Centres of pixels are at .5, but weights count from centre to centre.
  const shiftX = column + 0.5;
  const shiftY = row + 0.5;
  let missing = fillOutside(grid, outside, out, valid, fillValue);
  for (let j = 0, square = 0; j < grid.rows - 1; j++) {
    const rows = Math.min(step, grid.height - j * step);
    for (let i = 0; i < columns - 1; i++, square++) {
      const count = Math.min(step, grid.width - i * step);
      const node = j * columns + i;
      if (pending[square] === 0) continue;
      for (let y = 0; y < rows; y++) {
        if (((pending[square] >>> y) & 1) === 0) continue;
        let o = (j * step + y) * grid.width + i * step;
        const part = y / step;
        const startX = lerpRows(nodesX, node, columns, part) - shiftX;
        const startY = lerpRows(nodesY, node, columns, part) - shiftY;
        const dx = (lerpRows(nodesX, node + 1, columns, part) - shiftX - startX) / step;
        const dy = (lerpRows(nodesY, node + 1, columns, part) - shiftY - startY) / step;
        // From these on to the end pixels lie between four pixels of the window; where a node is NaN, none does.
        let from = 0;
        let end = count;
        if (interior[square] === 0) {
          from = Math.max(firstWithin(startX, dx, width), firstWithin(startY, dy, height));
          end = Math.min(count, endWithin(startX, dx, width), endWithin(startY, dy, height));
          if (!(from < end && (Math.abs(dx) + Math.abs(dy)) * step < MAX_SQUARE_SPAN)) from = end = 0;
          for (let k = 0; k < count; k++) {
            if (k >= from && k < end) continue;
            const mean = meanOfValid(pixels, width, height, nodata, startX + dx * k, startY + dy * k);
            missing += store(mean, out, valid, o + k, fillValue, round, nodata, nodataReplacement);
          }
        }
        o += from;
        const firstX = lerpRows(unitsX, node, columns, part);
        const firstY = lerpRows(unitsY, node, columns, part);
        const stepX = Math.floor((lerpRows(unitsX, node + 1, columns, part) - firstX) / step + 0.5) | 0;
        const stepY = Math.floor((lerpRows(unitsY, node + 1, columns, part) - firstY) / step + 0.5) | 0;
        const left = Math.floor(firstX / SUBPIXEL_ONE);
        const top = Math.floor(firstY / SUBPIXEL_ONE);
        const first = (Math.imul(top, width) + left) | 0;
        let countX = (firstX - left * SUBPIXEL_ONE + halfAlong + stepX * from) | 0;
        let countY = (firstY - top * SUBPIXEL_ONE + halfDown + stepY * from) | 0;
        if (small) {
          // In whole numbers of 2 ** -14; the change from row to row keeps as many digits as fit into 32 bits.
          for (let k = from; k < end; k++, o++) {
            const at = (first + Math.imul(countY >> 20, width) + (countX >> 20)) | 0;
            const below = (at + width) | 0;
            const a = pixels[at];
            const b = pixels[at + 1];
            const c = pixels[below];
            const d = pixels[below + 1];
            if (a !== wholeHole && b !== wholeHole && c !== wholeHole && d !== wholeHole) {
              const along = (countX & (SUBPIXEL_ONE - 1)) >> 6;
              const upper = (((a << 14) + Math.imul(b - a, along)) << scale) | 0;
              const lower = (((c << 14) + Math.imul(d - c, along)) << scale) | 0;
              const change = Math.imul((lower - upper + 2048) >> 12, (countY & (SUBPIXEL_ONE - 1)) >> 7) >> 1;
              const rounded = (upper + change + half) >> places;
              out[o] = rounded === wholeHole ? nodataReplacement : rounded;
            } else {
              const mean = meanOfValid(pixels, width, height, nodata, startX + dx * k, startY + dy * k);
              missing += store(mean, out, valid, o, fillValue, round, nodata, nodataReplacement);
            }
            countX = (countX + stepX) | 0;
            countY = (countY + stepY) | 0;
          }
          continue;
        }
        for (let k = from; k < end; k++, o++) {
          const at = (first + Math.imul(countY >> 20, width) + (countX >> 20)) | 0;
          const below = (at + width) | 0;
          const a = pixels[at];
          const b = pixels[at + 1];
          const c = pixels[below];
          const d = pixels[below + 1];
          let mean = NaN;
          if (a !== nodata && b !== nodata && c !== nodata && d !== nodata) {
            const along = (countX & (SUBPIXEL_ONE - 1)) / SUBPIXEL_ONE;
            const upper = a + (b - a) * along;
            const lower = c + (d - c) * along;
            mean = upper + ((lower - upper) * (countY & (SUBPIXEL_ONE - 1))) / SUBPIXEL_ONE;
          }
          if (Number.isNaN(mean)) {
            mean = meanOfValid(pixels, width, height, nodata, startX + dx * k, startY + dy * k);
          }
          missing += store(mean, out, valid, o, fillValue, round, nodata, nodataReplacement);
          countX = (countX + stepX) | 0;
          countY = (countY + stepY) | 0;
        }
      }
    }
  }
  return grid.width * grid.height - missing;
}

/** The first pixel of a row that lies within a window of `size` pixels on one axis; NaN of NaN. */
function firstWithin(start: number, step: number, size: number): number {
  const way = step >= 0 ? POSITION_TOLERANCE - start : start - (size - 1 - POSITION_TOLERANCE);
  return Math.max(0, Math.ceil(way / Math.abs(step)));
}

/** The pixel after the last of them. */
function endWithin(start: number, step: number, size: number): number {
  const way = step >= 0 ? size - 1 - POSITION_TOLERANCE - start : start - POSITION_TOLERANCE;
  return Math.floor(way / Math.abs(step)) + 1;
}

/** Empties the rows of squares that are blank, those side by side in one go. Returns the number of their pixels. */
function fillOutside(
  { width, height, step, columns }: ControlGrid,
  blank: Int32Array,
  out: PixelArray,
  valid: Uint8Array,
  fillValue: number,
): number {
  const last = columns - 1;
  let cleared = 0;
  for (let row = 0, start = 0; row < height; row++, start += width) {
    const squares = Math.floor(row / step) * last;
    const bit = row % step;
    for (let i = 0; i < last; i++) {
      const from = i;
      while (i < last && (blank[squares + i] >>> bit) & 1) i++;
      if (i === from) continue;
      const left = from * step;
      const right = Math.min(i * step, width);
      out.fill(fillValue, start + left, start + right);
      valid.fill(0, start + left, start + right);
      cleared += right - left;
    }
  }
  return cleared;
}

/** Writes a mean; NaN is a pixel without data. Returns the number of such pixels: 0 or 1. */
function store(
  mean: number,
  out: PixelArray,
  valid: Uint8Array,
  at: number,
  fillValue: number,
  round: boolean,
  nodata: number,
  nodataReplacement: number,
): number {
  if (Number.isNaN(mean)) {
    out[at] = fillValue;
    valid[at] = 0;
    return 1;
  }
  const value = round ? Math.floor(mean + 0.5) : mean;
  out[at] = value === nodata ? nodataReplacement : value;
  return 0;
}

/** Weighted mean of those of the four pixels around a point that hold data; NaN where its nearest pixel does not. */
function meanOfValid(
  pixels: PixelArray,
  width: number,
  height: number,
  nodata: number,
  x: number,
  y: number,
): number {
  const nearestX = Math.floor(x + 0.5 + PIXEL_EPSILON);
  const nearestY = Math.floor(y + 0.5 + PIXEL_EPSILON);
  if (!(nearestX >= 0 && nearestY >= 0 && nearestX < width && nearestY < height)) return NaN;
  const own = pixels[nearestY * width + nearestX];
  if (own === nodata || Number.isNaN(own)) return NaN;
  const left = Math.floor(x);
  const top = Math.floor(y);
  let sum = 0;
  let weights = 0;
  for (let j = 0; j < 2; j++) {
    for (let i = 0; i < 2; i++) {
      const column = left + i;
      const row = top + j;
      if (column < 0 || row < 0 || column >= width || row >= height) continue;
      const value = pixels[row * width + column];
      if (value === nodata || Number.isNaN(value)) continue;
      const weight = (i === 0 ? 1 - x + left : x - left) * (j === 0 ? 1 - y + top : y - top);
      sum += value * weight;
      weights += weight;
    }
  }
  return sum / weights;
}
