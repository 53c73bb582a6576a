/** Bilinear interpolation over the squares of a control grid. Each data type gets its own copy: see warp.ts. */
import type { PixelArray } from '../raster.js';
import type { ControlGrid } from './control-grid.js';
import type { SourceWindow } from './nearest.js';
import { type GridSquares, lerpRows, PIXEL_EPSILON } from './squares.js';

/**
 * Weighted mean of the four pixels around each position, leaving out pixels without data. A position holds data if its nearest
 * pixel does. Integer pixels are rounded (`round`). A mean equal to `nodata` becomes `nodataReplacement`. Fills the rows of squares
 * that are `outside`, interpolates the `pending` ones, and leaves all others as they are: they count as pixels with data.
 * Returns the number of pixels with data.
 */
export function bilinear(
  { pixels, width, height, column, row, nodata }: SourceWindow,
  grid: ControlGrid,
  { outside, pending }: Pick<GridSquares, 'outside' | 'pending'>,
  out: PixelArray,
  valid: Uint8Array,
  fillValue: number,
  round: boolean,
  nodataReplacement: number,
): number {
  const { step, columns, x: gridX, y: gridY } = grid;
  // Centres of pixels are at .5, but weights count from centre to centre.
  const shiftX = column + 0.5;
  const shiftY = row + 0.5;
  let missing = fillOutside(grid, outside, out, valid, fillValue);
  for (let outRow = 0; outRow < grid.height; outRow++) {
    const j = Math.floor(outRow / step);
    const bit = outRow % step;
    const part = bit / step;
    for (let i = 0; i < columns - 1; i++) {
      if (((pending[j * (columns - 1) + i] >>> bit) & 1) === 0) continue;
      const point = j * columns + i;
      const startX = lerpRows(gridX, point, columns, part) - shiftX;
      const startY = lerpRows(gridY, point, columns, part) - shiftY;
      const dx = (lerpRows(gridX, point + 1, columns, part) - shiftX - startX) / step;
      const dy = (lerpRows(gridY, point + 1, columns, part) - shiftY - startY) / step;
      const count = Math.min(step, grid.width - i * step);
      let o = outRow * grid.width + i * step;
      for (let k = 0; k < count; k++, o++) {
        const x = startX + dx * k;
        const y = startY + dy * k;
        let mean = NaN;
        if (x >= 0 && y >= 0 && x < width - 1 && y < height - 1) {
          const left = x | 0;
          const top = y | 0;
          const at = top * width + left;
          const a = pixels[at];
          const b = pixels[at + 1];
          const c = pixels[at + width];
          const d = pixels[at + width + 1];
          if (a !== nodata && b !== nodata && c !== nodata && d !== nodata) {
            const upper = a + (b - a) * (x - left);
            const lower = c + (d - c) * (x - left);
            mean = upper + (lower - upper) * (y - top);
          }
        }
        if (Number.isNaN(mean)) mean = meanOfValid(pixels, width, height, nodata, x, y);
        if (Number.isNaN(mean)) {
          out[o] = fillValue;
          valid[o] = 0;
          missing++;
          continue;
        }
        const value = round ? Math.floor(mean + 0.5) : mean;
        out[o] = value === nodata ? nodataReplacement : value;
      }
    }
  }
  return grid.width * grid.height - missing;
}

/** Fills the rows of squares that are outside of the window, neighbours together. Returns the number of their pixels. */
function fillOutside(
  { width, height, step, columns }: ControlGrid,
  outside: Int32Array,
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
      while (i < last && (outside[squares + i] >>> bit) & 1) i++;
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

/** Weighted mean of the four pixels around a position, without pixels that hold no data; NaN if the nearest pixel holds no data. */
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
