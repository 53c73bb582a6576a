/** Primitives on the heap of tfjs: WebAssembly (tools/wat) for the expensive parts, and TypeScript around it, such as pooling. */

import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import * as direct from './direct.js';
import { gemm, PANEL_ROWS, PANEL_WIDTH, packPanels } from './gemm.js';
import { FLOAT32_BYTES, roundUpTo, WasmHeap } from './heap.js';
import * as general from './im2col.js';
import { type ComputePrimitives, FILTER_GRADIENT, FORWARD } from './primitives.js';
import * as winograd from './winograd.js';
import { isWinograd } from './winograd-plan.js';

/** Channels of a vector. Pooling in WebAssembly processes complete vectors; other numbers of channels are computed in TypeScript. */
const VECTOR = 4;

/** Pooling on the heap. The geometry is that of `ComputePrimitives.maxPool`. */
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

const maxPool = poolBy('maxPool', (pixels, x) =>
  pixels.reduce((most, pixel) => Math.max(most, x[pixel]), -Infinity),
);

const avgPool = poolBy(
  'avgPool',
  (pixels, x) => pixels.reduce((sum, pixel) => sum + x[pixel], 0) / pixels.length,
);

/** The loops address the heap, so an array of another length would damage other tensors. */
function checkLengths(
  { batch, height, width, channels, taps, outputs, rows, columns, pixels }: general.ConvolutionShape,
  x: Float32Array,
  filter: Float32Array,
  y: Float32Array,
  bias: Float32Array | null,
): void {
  if (rows < 1 || columns < 1) throw new Error('the filter is larger than the padded image');
  for (const [name, array, length] of [
    ['input', x, batch * height * width * channels],
    ['filter', filter, taps * outputs],
    ['output', y, pixels * outputs],
    ['bias', bias, outputs],
  ] as const)
    if (array && array.length !== length)
      throw new Error(`the ${name} of a convolution has ${array.length} values in place of ${length}`);
}

/** True if the windows cover the image and do not overlap. */
function areDisjoint(geometry: Int32Array): boolean {
  const [, height, width, , rows, columns, filterHeight, filterWidth] = geometry;
  const [strideHeight, strideWidth, top, left] = geometry.subarray(8);
  const isWhole = rows * strideHeight === height && columns * strideWidth === width;
  return isWhole && strideHeight === filterHeight && strideWidth === filterWidth && top + left === 0;
}

function maxPoolGradient(
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

const avgPoolGradient: Pool = (heap, geometry, dy, dx) => {
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

function methodFor(direction: number, shape: general.ConvolutionShape) {
  const isTiled = isWinograd(shape);
  const isDirect = direct.isDirect(shape);
  if (direction === FORWARD) return isTiled ? winograd.forward : isDirect ? direct.forward : general.forward;
  if (direction === FILTER_GRADIENT)
    return isTiled ? winograd.filterGradient : isDirect ? direct.filterGradient : general.filterGradient;
  if (isTiled) return winograd.inputGradient;
  return direct.isDirectInputGradient(shape) ? direct.inputGradient : general.inputGradient;
}

/** Below this number of values, summing in TypeScript is faster than calling WebAssembly. */
const MIN_WASM_LENGTH = 2048;

/** Returns the primitives on the heap of a started backend. Arrays outside of the heap are copied to the heap and back. */
export function wasmPrimitives(backend: BackendWasm): ComputePrimitives {
  const heap = new WasmHeap(backend);

  const primitives: ComputePrimitives = {
    convolve(direction, geometry, x, filter, y, bias) {
      const shape = general.convolutionShape(geometry);
      checkLengths(shape, x, filter, y, bias);
      const compute = methodFor(direction, shape);
      heap.withAddresses(bias ? [x, filter, y, bias] : [x, filter, y], (ofX, ofFilter, ofY, ofBias) =>
        compute(heap, shape, ofX, ofFilter, ofY, ofBias),
      );
    },

    multiply([m, n, k, transposeA, transposeB], a, b, c) {
      heap.withAddresses([a, b, c], (ofA, ofB, toC) => {
        const [tall, wide] = [roundUpTo(PANEL_ROWS, m), roundUpTo(PANEL_WIDTH, n)];
        const [panels, start, edge, copy] = heap.scratch(wide * k, wide, tall * PANEL_WIDTH, tall * k);
        const [row, column] = transposeA ? [1, m] : [k, 1];
        heap.run.copyStrided(m, k, ofA, row * FLOAT32_BYTES, column * FLOAT32_BYTES, copy, k * FLOAT32_BYTES);
        packPanels(
          heap,
          { address: ofB, ...(transposeB ? { row: 1, column: k } : { row: n, column: 1 }) },
          k,
          n,
          panels,
        );
        heap.float32View(start, wide).fill(0);
        gemm(heap, { m, n, k, a: { address: copy, row: k, column: 1 }, panels, start, c: toC, edge });
      });
    },

    columnSums(rows, columns, x, sums) {
      const all = new Float64Array(columns);
      if (rows * columns < MIN_WASM_LENGTH) {
        for (let at = 0; at < rows * columns; at += columns)
          for (let c = 0; c < columns; c++) all[c] += x[at + c];
      } else {
        heap.withAddresses([x, new Float32Array(all.buffer)], (ofX, toAll) =>
          heap.run.columnSums(rows, columns, ofX, toAll),
        );
      }
      sums.set(all);
    },

    maxPool: (...given) => maxPool(heap, ...given),
    maxPoolGradient: (...given) => maxPoolGradient(heap, ...given),
    avgPool: (...given) => avgPool(heap, ...given),
    avgPoolGradient: (...given) => avgPoolGradient(heap, ...given),

    leakyRelu(length, alpha, x, y) {
      heap.withAddresses([x, y], (...at) => heap.run.leakyRelu(length, alpha, ...at));
    },

    leakyReluGradient(length, alpha, x, dy, dx) {
      heap.withAddresses([x, dy, dx], (...at) => heap.run.leakyReluGradient(length, alpha, ...at));
    },

    scaleChannels(rows, channels, x, mean, scale, offset, y) {
      heap.withAddresses([x, mean, scale, offset, y], (...at) =>
        heap.run.scaleChannels(rows, channels, ...at),
      );
    },

    channelMoments(rows, channels, x, mean, variance) {
      // Relative to the first row, because a mean that is large relative to the deviations would cancel them.
      const first = x.slice(0, channels);
      const [sums, products] = channelSums(rows, channels, x, x, first);
      for (let c = 0; c < channels; c++) {
        const distance = sums[c] / rows - first[c];
        mean[c] = sums[c] / rows;
        variance[c] = Math.max(
          0,
          (products[c] - first[c] * (sums[c] - rows * first[c])) / rows - distance ** 2,
        );
      }
    },

    batchNormSums(rows, channels, x, dy, mean, sums, products) {
      const [allSums, allProducts] = channelSums(rows, channels, x, dy, mean);
      sums.set(allSums);
      products.set(allProducts);
    },

    batchNormGradient(rows, channels, x, dy, mean, scale, slope, offset, dx) {
      heap.withAddresses([x, dy, mean, scale, slope, offset, dx], (...at) =>
        heap.run.batchNormGradient(rows, channels, ...at),
      );
    },

    copyColumns([rows, columns, fromWidth, fromColumn, toWidth, toColumn], from, to) {
      heap.withAddresses([from, to], (source, target) =>
        heap.run.copyRuns(
          rows,
          columns,
          source + fromColumn * FLOAT32_BYTES,
          fromWidth * FLOAT32_BYTES,
          target + toColumn * FLOAT32_BYTES,
          toWidth * FLOAT32_BYTES,
        ),
      );
    },

    adam(length, beta1, beta2, decay, rate, epsilon, ...arrays) {
      heap.withAddresses(arrays, (...at) =>
        heap.run.adam(length, 1 - beta1, 1 - beta2, decay, rate, epsilon, ...at),
      );
    },
  };

  /** Returns the sums of dy and of dy (x - mean) for each channel. */
  function channelSums(
    rows: number,
    channels: number,
    x: Float32Array,
    dy: Float32Array,
    mean: Float32Array,
  ): [Float64Array, Float64Array] {
    const results = [0, 1].map(() => new Float64Array(channels));
    const asFloats = results.map(({ buffer }) => new Float32Array(buffer));
    heap.withAddresses([x, dy, mean, ...asFloats], (...at) => heap.run.channelSums(rows, channels, ...at));
    return results as [Float64Array, Float64Array];
  }

  return primitives;
}
