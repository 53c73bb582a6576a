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
  /** True where no pixel that the grid touches is a hole or NaN: they need not be looked for then. */
  clean: boolean;
}

/** Noise of projections is far below, real differences are far above: a pixel centre on an edge goes to the right pixel. */
const EDGE = 1e-10;

/**
 * Nearest pixel. `empty` is written where the source holds no data, and 0 to `valid` there; elsewhere `valid` stays.
 * Returns the number of pixels with data.
 */
export function nearest(
  { pixels, width, height, column, row, hole, clean }: KernelSource,
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
        Math.min(startX, lastX) >= 0 &&
        Math.min(startY, lastY) >= 0 &&
        Math.max(startX, lastX) < width &&
        Math.max(startY, lastY) < height;
      if (inside && clean) {
        for (let i = 0; i < count; i++, o++) {
          out[o] = pixels[((startY + dy * i) | 0) * width + ((startX + dx * i) | 0)];
        }
        continue;
      }
      for (let i = 0; i < count; i++, o++) {
        const sourceX = startX + dx * i;
        const sourceY = startY + dy * i;
        if (inside || (sourceX >= 0 && sourceY >= 0 && sourceX < width && sourceY < height)) {
          const value = pixels[(sourceY | 0) * width + (sourceX | 0)];
          if (value !== hole && !Number.isNaN(value)) {
            out[o] = value;
            continue;
          }
        }
        out[o] = empty;
        valid[o] = 0;
        holes++;
      }
    }
  }
  return o - holes;
}

/** Between a node and the one below it. */
function between(nodes: Float64Array, node: number, columns: number, part: number): number {
  const above = nodes[node];
  return above + (nodes[node + columns] - above) * part;
}

/** Positions along a row of pixels are counted in 2 ** -20 of a source pixel: adding integers is fast. */
const UNIT = 2 ** 20;
/** The longest way along one square of the control grid that can be counted so. */
const LONGEST = 2000;

/**
 * Mean of the four pixels around a point, weighted by distance; pixels without data are left out. A point holds data where its
 * nearest pixel does. `round` for integers. A mean that happens to equal the hole becomes `notHole`. Else as `nearest`.
 */
export function bilinear(
  { pixels, width, height, column, row, hole, clean }: KernelSource,
  grid: ControlGrid,
  out: PixelArray,
  valid: Uint8Array,
  empty: number,
  round: boolean,
  notHole: number,
): number {
  const { step, columns, x: nodesX, y: nodesY } = grid;
  const outWidth = grid.width;
  const small = round && pixels.BYTES_PER_ELEMENT <= 2;
  // 16 bits: the change in quarters, weights of 12 bits. 8 bits: the change in 2 ** -9, weights of 13 bits.
  const drop = pixels.BYTES_PER_ELEMENT === 1 ? 5 : 12;
  const half = 1 << (drop - 1);
  const weightShift = pixels.BYTES_PER_ELEMENT === 1 ? 7 : 8;
  const restShift = pixels.BYTES_PER_ELEMENT === 1 ? 8 : 0;
  /** As a whole number; one that no such pixel has where there is no hole. */
  const wholeHole = Number.isNaN(hole) ? -(2 ** 30) : hole | 0;
  // Centres of pixels are at .5, but weights count from centre to centre.
  const shiftX = column + 0.5;
  const shiftY = row + 0.5;
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
      // With both ends of the square a little inside, so is all between them, whatever is rounded on the way.
      const inside =
        Math.min(startX, endX) >= 0.01 &&
        Math.min(startY, endY) >= 0.01 &&
        Math.max(startX, endX) < width - 1.01 &&
        Math.max(startY, endY) < height - 1.01 &&
        Math.abs(endX - startX) + Math.abs(endY - startY) < LONGEST;
      if (!inside) {
        for (let i = 0; i < count; i++, o++) {
          const mean = meanOfValid(pixels, width, height, hole, startX + dx * i, startY + dy * i);
          holes += store(mean, out, valid, o, empty, round, hole, notHole);
        }
        continue;
      }
      const left = startX | 0;
      const top = startY | 0;
      const first = (Math.imul(top, width) + left) | 0;
      let countX = ((startX - left) * UNIT) | 0;
      let countY = ((startY - top) * UNIT) | 0;
      const stepX = Math.round(dx * UNIT) | 0;
      const stepY = Math.round(dy * UNIT) | 0;
      if (clean && small) {
        // In whole numbers of 2 ** -14; the change from row to row keeps as many digits as fit into 32 bits.
        for (let i = 0; i < count; i++, o++) {
          const at = (first + Math.imul(countY >> 20, width) + (countX >> 20)) | 0;
          const below = (at + width) | 0;
          const a = pixels[at];
          const c = pixels[below];
          const along = (countX & (UNIT - 1)) >> 6;
          const upper = ((a << 14) + Math.imul(pixels[at + 1] - a, along)) | 0;
          const lower = ((c << 14) + Math.imul(pixels[below + 1] - c, along)) | 0;
          const change =
            Math.imul((lower - upper + half) >> drop, (countY & (UNIT - 1)) >> weightShift) >> restShift;
          const rounded = (upper + change + 8192) >> 14;
          out[o] = rounded === wholeHole ? notHole : rounded;
          countX = (countX + stepX) | 0;
          countY = (countY + stepY) | 0;
        }
        continue;
      }
      if (clean) {
        for (let i = 0; i < count; i++, o++) {
          const at = (first + Math.imul(countY >> 20, width) + (countX >> 20)) | 0;
          const below = (at + width) | 0;
          const a = pixels[at];
          const c = pixels[below];
          const along = (countX & (UNIT - 1)) / UNIT;
          const upper = a + (pixels[at + 1] - a) * along;
          const lower = c + (pixels[below + 1] - c) * along;
          const mean = upper + ((lower - upper) * (countY & (UNIT - 1))) / UNIT;
          const value = round ? Math.floor(mean + 0.5) : mean;
          out[o] = value === hole ? notHole : value;
          countX = (countX + stepX) | 0;
          countY = (countY + stepY) | 0;
        }
        continue;
      }
      for (let i = 0; i < count; i++, o++) {
        const at = (first + Math.imul(countY >> 20, width) + (countX >> 20)) | 0;
        const below = (at + width) | 0;
        const a = pixels[at];
        const b = pixels[at + 1];
        const c = pixels[below];
        const d = pixels[below + 1];
        let mean = NaN;
        if (a !== hole && b !== hole && c !== hole && d !== hole) {
          const along = (countX & (UNIT - 1)) / UNIT;
          const upper = a + (b - a) * along;
          const lower = c + (d - c) * along;
          mean = upper + ((lower - upper) * (countY & (UNIT - 1))) / UNIT;
        }
        if (Number.isNaN(mean)) {
          mean = meanOfValid(pixels, width, height, hole, left + countX / UNIT, top + countY / UNIT);
        }
        holes += store(mean, out, valid, o, empty, round, hole, notHole);
        countX = (countX + stepX) | 0;
        countY = (countY + stepY) | 0;
      }
    }
  }
  return o - holes;
}

/** Writes a mean; NaN is a pixel without data. Returns the number of such pixels: 0 or 1. */
function store(
  mean: number,
  out: PixelArray,
  valid: Uint8Array,
  at: number,
  empty: number,
  round: boolean,
  hole: number,
  notHole: number,
): number {
  if (Number.isNaN(mean)) {
    out[at] = empty;
    valid[at] = 0;
    return 1;
  }
  const value = round ? Math.floor(mean + 0.5) : mean;
  out[at] = value === hole ? notHole : value;
  return 0;
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
  if (!(nearestX >= 0 && nearestY >= 0 && nearestX < width && nearestY < height)) return NaN;
  const own = pixels[nearestY * width + nearestX];
  if (own === hole || Number.isNaN(own)) return NaN;
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
          const value = source[y * width + x];
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
  for (let i = 0; i < count; i++, from += samples) out[to + i] = source[from];
}
