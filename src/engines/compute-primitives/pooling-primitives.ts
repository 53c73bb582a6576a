/**
 * Pooling on the heap. The geometry is that of `ComputePrimitives.maxPool`. The WebAssembly processes complete vectors of channels; other
 * numbers of channels are computed in TypeScript.
 */
import { FLOAT32_BYTES, type WasmHeap } from './wasm-primitives-heap.js';

/** Channels of a vector. */
const VECTOR = 4;

type Pool = (heap: WasmHeap, geometry: Int32Array, x: Float32Array, y: Float32Array) => void;

const poolBy =
  (name: 'maxPool' | 'avgPool', reduce: (pixels: readonly number[], x: Float32Array) => number): Pool =>
  (heap, geometry, x, y) => {
    if (geometry[3] % VECTOR !== 0)
      eachWindow(geometry, (at, pixels) => {
        y[at] = reduce(pixels, x);
      });
    else
      heap.withAddresses([x, y], (ofX, toY) => {
        eachRun(geometry, (windows, { atX, atY }) => heap.run[name](...windows(ofX + atX), toY + atY));
      });
  };

export const maxPool = poolBy('maxPool', (pixels, x) =>
  pixels.reduce((most, pixel) => Math.max(most, x[pixel]), -Infinity),
);

export const avgPool = poolBy(
  'avgPool',
  (pixels, x) => pixels.reduce((sum, pixel) => sum + x[pixel], 0) / pixels.length,
);

/** True if the windows cover the image and do not overlap. */
function areDisjoint(geometry: Int32Array): boolean {
  const [, height, width, , rows, columns, filterHeight, filterWidth] = geometry;
  const [strideHeight, strideWidth, top, left] = geometry.subarray(8);
  const isWhole = rows * strideHeight === height && columns * strideWidth === width;
  return isWhole && strideHeight === filterHeight && strideWidth === filterWidth && top + left === 0;
}

export function maxPoolGradient(
  heap: WasmHeap,
  geometry: Int32Array,
  x: Float32Array,
  dy: Float32Array,
  dx: Float32Array,
): void {
  const isDisjoint = areDisjoint(geometry);
  const isVector = geometry[3] % VECTOR === 0;
  if (!isDisjoint || !isVector) dx.fill(0);
  const run = isDisjoint ? heap.run.maxPoolGradientDisjoint : heap.run.maxPoolGradient;
  if (!isVector)
    eachWindow(geometry, (at, pixels) => {
      dx[pixels.reduce((most, pixel) => (x[pixel] > x[most] ? pixel : most))] += dy[at];
    });
  else
    heap.withAddresses([x, dy, dx], (ofX, ofDy, toDx) => {
      eachRun(geometry, (windows, { atX, atY }) => run(...windows(ofX + atX), ofDy + atY, toDx + atX));
    });
}

export const avgPoolGradient: Pool = (heap, geometry, dy, dx) => {
  const isDisjoint = areDisjoint(geometry);
  const isVector = geometry[3] % VECTOR === 0;
  if (!isDisjoint || !isVector) dx.fill(0);
  const run = isDisjoint ? heap.run.avgPoolGradientDisjoint : heap.run.avgPoolGradient;
  if (!isVector)
    eachWindow(geometry, (at, pixels) => {
      for (const pixel of pixels) dx[pixel] += dy[at] / pixels.length;
    });
  else
    heap.withAddresses([dy, dx], (ofDy, toDx) => {
      eachRun(geometry, (windows, { atX, atY }) => run(...windows(toDx + atX), ofDy + atY));
    });
};

/**
 * Visits runs of consecutive windows of equal size in a row: their first parameters for the WebAssembly, given the address of their
 * image, and their offsets in x and y in bytes.
 */
function eachRun(
  geometry: Int32Array,
  visit: (windows: (x: number) => number[], at: { atX: number; atY: number }) => void,
): void {
  const [batch, height, width, channels, rows, columns, filterHeight, filterWidth] = geometry;
  const [strideHeight, strideWidth, top, left] = geometry.subarray(8);
  const pixel = channels * FLOAT32_BYTES;
  for (let line = 0; line < batch * rows; line++) {
    const [firstRow, endRow] = within((line % rows) * strideHeight - top, filterHeight, height);
    for (let column = 0; column < columns; ) {
      const [first, end] = within(column * strideWidth - left, filterWidth, width);
      // Complete windows are consecutive up to the right edge.
      const last = Math.floor((width - filterWidth + left) / strideWidth);
      const count = end - first === filterWidth ? Math.max(1, Math.min(columns - 1, last) - column + 1) : 1;
      if (endRow > firstRow && end > first) {
        const size = [count, channels / VECTOR, endRow - firstRow, end - first];
        const windows = (x: number) => [...size, x, width * pixel, pixel, strideWidth * pixel];
        const atX = ((Math.floor(line / rows) * height + firstRow) * width + first) * pixel;
        visit(windows, { atX, atY: (line * columns + column) * pixel });
      }
      column += count;
    }
  }
}

/** Visits each channel of each window: its index in the output, and the indices of its pixels in the input, row by row. */
function eachWindow(geometry: Int32Array, visit: (output: number, pixels: readonly number[]) => void): void {
  const [batch, height, width, channels, rows, columns, filterHeight, filterWidth] = geometry;
  const [strideHeight, strideWidth, top, left] = geometry.subarray(8);
  let output = 0;
  for (let line = 0; line < batch * rows; line++) {
    const [firstRow, endRow] = within((line % rows) * strideHeight - top, filterHeight, height);
    const first = Math.floor(line / rows) * height;
    for (let column = 0; column < columns; column++) {
      const [firstColumn, endColumn] = within(column * strideWidth - left, filterWidth, width);
      for (let c = 0; c < channels; c++) {
        const pixels: number[] = [];
        for (let i = firstRow; i < endRow; i++)
          for (let j = firstColumn; j < endColumn; j++) pixels.push(((first + i) * width + j) * channels + c);
        visit(output++, pixels);
      }
    }
  }
}

/** Returns the part of a window that is inside the image. */
function within(first: number, length: number, size: number): [from: number, to: number] {
  return [Math.max(0, first), Math.min(size, first + length)];
}
