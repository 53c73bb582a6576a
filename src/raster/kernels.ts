/**
 * Loops over pixels that must be fast. Each data type gets its own copy of this module (see kernels-by-type.ts), because
 * V8's code for a loop that has met more than four types of arrays is ten times slower.
 */
import type { ControlGrid } from './control-grid.js';
import type { PixelArray } from './types.js';

/** A rectangle of a source image. */
export interface KernelSource {
  pixels: PixelArray;
  width: number;
  height: number;
  /** Where the rectangle begins in the image. */
  column: number;
  row: number;
  /** The value of pixels without data; NaN where there is none. NaN pixels hold no data anyway. */
  hole: number;
}

/** Noise of projections is far below, real differences are far above: a pixel centre on an edge goes to the right pixel. */
const EDGE = 1e-10;

/**
 * Nearest pixel. `empty` is written where the source holds no data, and 0 to `valid` there; elsewhere `valid` stays.
 * Returns the number of pixels with data.
 */
export function nearest(
  { pixels, width, height, column, row, hole }: KernelSource,
  grid: ControlGrid,
  out: PixelArray,
  valid: Uint8Array,
  empty: number,
): number {
  const { step, columns, x: nodesX, y: nodesY } = grid;
  const outWidth = grid.width;
  let holes = 0;
  let o = 0;
  for (let y = 0; y < grid.height; y++) {
    const nodeRow = Math.floor(y / step) * columns;
    const part = (y % step) / step;
    let endX = between(nodesX, nodeRow, columns, part) - column + EDGE;
    let endY = between(nodesY, nodeRow, columns, part) - row + EDGE;
    for (let x = 0, node = nodeRow + 1; x < outWidth; x += step, node++) {
      const startX = endX;
      const startY = endY;
      endX = between(nodesX, node, columns, part) - column + EDGE;
      endY = between(nodesY, node, columns, part) - row + EDGE;
      const dx = (endX - startX) / step;
      const dy = (endY - startY) / step;
      const count = Math.min(step, outWidth - x);
      const lastX = startX + dx * (count - 1);
      const lastY = startY + dy * (count - 1);
      const inside =
        startX >= 0 &&
        lastX >= 0 &&
        startY >= 0 &&
        lastY >= 0 &&
        startX < width &&
        lastX < width &&
        startY < height &&
        lastY < height;
      if (!inside) {
        for (let i = 0; i < count; i++, o++) {
          const sourceX = startX + dx * i;
          const sourceY = startY + dy * i;
          const hit = sourceX >= 0 && sourceY >= 0 && sourceX < width && sourceY < height;
          const value = hit ? pixels[(sourceY | 0) * width + (sourceX | 0)]! : empty;
          if (hit && value !== hole && !Number.isNaN(value)) {
            out[o] = value;
          } else {
            out[o] = empty;
            valid[o] = 0;
            holes++;
          }
        }
      } else if ((startY | 0) === (lastY | 0)) {
        const start = (startY | 0) * width;
        for (let i = 0; i < count; i++, o++) {
          const value = pixels[start + ((startX + dx * i) | 0)]!;
          out[o] = value;
          if (value === hole || Number.isNaN(value)) {
            out[o] = empty;
            valid[o] = 0;
            holes++;
          }
        }
      } else {
        for (let i = 0; i < count; i++, o++) {
          const value = pixels[((startY + dy * i) | 0) * width + ((startX + dx * i) | 0)]!;
          out[o] = value;
          if (value === hole || Number.isNaN(value)) {
            out[o] = empty;
            valid[o] = 0;
            holes++;
          }
        }
      }
    }
  }
  return o - holes;
}

/** Between a node and the one below it. */
function between(nodes: Float64Array, node: number, columns: number, part: number): number {
  const above = nodes[node]!;
  return above + (nodes[node + columns]! - above) * part;
}

/**
 * Mean of the four pixels around a point, weighted by distance; pixels without data are left out. A point holds data where its
 * nearest pixel does. `round` for integers. A mean that happens to equal the hole becomes `notHole`. Else as `nearest`.
 */
export function bilinear(
  source: KernelSource,
  grid: ControlGrid,
  out: PixelArray,
  valid: Uint8Array,
  empty: number,
  round: boolean,
  notHole: number,
): number {
  const { pixels, width, height, hole } = source;
  const { step, columns, x: nodesX, y: nodesY } = grid;
  const outWidth = grid.width;
  // Centres of pixels are at .5, but weights count from centre to centre.
  const shiftX = source.column + 0.5;
  const shiftY = source.row + 0.5;
  const right = width - 1;
  const bottom = height - 1;
  let holes = 0;
  let o = 0;
  for (let y = 0; y < grid.height; y++) {
    const nodeRow = Math.floor(y / step) * columns;
    const part = (y % step) / step;
    let endX = between(nodesX, nodeRow, columns, part) - shiftX;
    let endY = between(nodesY, nodeRow, columns, part) - shiftY;
    for (let x = 0, node = nodeRow + 1; x < outWidth; x += step, node++) {
      const startX = endX;
      const startY = endY;
      endX = between(nodesX, node, columns, part) - shiftX;
      endY = between(nodesY, node, columns, part) - shiftY;
      const dx = (endX - startX) / step;
      const dy = (endY - startY) / step;
      const count = Math.min(step, outWidth - x);
      const lastX = startX + dx * (count - 1);
      const lastY = startY + dy * (count - 1);
      const inside =
        startX >= 0 &&
        lastX >= 0 &&
        startY >= 0 &&
        lastY >= 0 &&
        startX < right &&
        lastX < right &&
        startY < bottom &&
        lastY < bottom;
      for (let i = 0; i < count; i++, o++) {
        const sourceX = startX + dx * i;
        const sourceY = startY + dy * i;
        let mean: number;
        if (inside) {
          const left = sourceX | 0;
          const top = sourceY | 0;
          const at = top * width + left;
          const a = pixels[at]!;
          const b = pixels[at + 1]!;
          const c = pixels[at + width]!;
          const d = pixels[at + width + 1]!;
          if (a !== hole && b !== hole && c !== hole && d !== hole) {
            const along = sourceX - left;
            const upper = a + (b - a) * along;
            const lower = c + (d - c) * along;
            mean = upper + (lower - upper) * (sourceY - top);
            // NaN: one of the four is.
            if (Number.isNaN(mean)) mean = meanOfValid(pixels, width, height, hole, sourceX, sourceY);
          } else mean = meanOfValid(pixels, width, height, hole, sourceX, sourceY);
        } else mean = meanOfValid(pixels, width, height, hole, sourceX, sourceY);

        if (Number.isNaN(mean)) {
          out[o] = empty;
          valid[o] = 0;
          holes++;
        } else {
          if (round) mean = Math.floor(mean + 0.5);
          out[o] = mean === hole ? notHole : mean;
        }
      }
    }
  }
  return o - holes;
}

/** Weighted mean of those of the four pixels around a point that hold data; NaN where its nearest pixel does not. */
function meanOfValid(
  pixels: PixelArray,
  width: number,
  height: number,
  hole: number,
  x: number,
  y: number,
): number {
  const nearestX = Math.floor(x + 0.5 + EDGE);
  const nearestY = Math.floor(y + 0.5 + EDGE);
  if (!(nearestX >= 0 && nearestY >= 0 && nearestX < width && nearestY < height)) return Number.NaN;
  const own = pixels[nearestY * width + nearestX]!;
  if (own === hole || Number.isNaN(own)) return Number.NaN;
  const left = Math.floor(x);
  const top = Math.floor(y);
  let sum = 0;
  let weights = 0;
  for (let j = 0; j < 2; j++) {
    for (let i = 0; i < 2; i++) {
      const column = left + i;
      const row = top + j;
      if (column < 0 || row < 0 || column >= width || row >= height) continue;
      const value = pixels[row * width + column]!;
      if (value === hole || Number.isNaN(value)) continue;
      const weight = (i === 0 ? 1 - x + left : x - left) * (j === 0 ? 1 - y + top : y - top);
      sum += value * weight;
      weights += weight;
    }
  }
  return sum / weights;
}

/** Half of an image in both directions: each pixel the mean of those of four that hold data. */
export function halveByMean(
  source: PixelArray,
  width: number,
  height: number,
  hole: number,
  out: PixelArray,
  empty: number,
  round: boolean,
): void {
  for (let row = 0, to = 0; row < height; row += 2) {
    const lastRow = Math.min(row + 1, height - 1);
    for (let column = 0; column < width; column += 2) {
      const lastColumn = Math.min(column + 1, width - 1);
      let sum = 0;
      let count = 0;
      for (let y = row; y <= lastRow; y++) {
        for (let x = column; x <= lastColumn; x++) {
          const value = source[y * width + x]!;
          if (value === hole || Number.isNaN(value)) continue;
          sum += value;
          count++;
        }
      }
      const mean = sum / count;
      out[to++] = count === 0 ? empty : round ? Math.floor(mean + 0.5) : mean;
    }
  }
}

/** One sample of each of `count` pixels of `samples` interleaved values. */
export function pickSample(
  source: PixelArray,
  from: number,
  samples: number,
  out: PixelArray,
  to: number,
  count: number,
): void {
  for (let i = 0; i < count; i++, from += samples) out[to + i] = source[from]!;
}
