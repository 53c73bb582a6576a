/**
 * Convolutions on the heap as products of matrices: the surroundings of some pixels are laid side by side, as rows [pixels,taps],
 * and multiplied with the filter [taps,outputs].
 */

import { blockedSum, multiply, PANEL, pack, ROWS } from './gemm.js';
import { BYTES, type Heap, upTo } from './wasm-heap.js';

/** Pixels of a product: as many as the second cache holds the surroundings of. */
const MOST_PIXELS = 128;
const LEAST_PIXELS = 32;
const MOST_FLOATS = 2 ** 17;
/** A line of the cache, in floats. */
const SKEW = 16;

export interface Shape {
  batch: number;
  height: number;
  width: number;
  channels: number;
  outputs: number;
  filter: [number, number];
  stride: [number, number];
  dilation: [number, number];
  top: number;
  left: number;
  bottom: number;
  right: number;
  /** Of the output. */
  rows: number;
  columns: number;
  pixels: number;
  /** Values of the input that go into a pixel of the output. */
  taps: number;
  /** Pixels of a product. */
  block: number;
}

/** The geometry is that of `Loops.convolve`. */
export function shapeOf(geometry: Int32Array): Shape {
  const [batch, height, width, channels, outputs, ...rest] = geometry;
  const [filterHeight, filterWidth, strideHeight, strideWidth, dilationHeight, dilationWidth] = rest;
  const [top, left, bottom, right] = rest.slice(6);
  const size = (length: number, filter: number, stride: number, dilation: number) =>
    Math.floor((length - ((filter - 1) * dilation + 1)) / stride) + 1;
  const rows = size(height + top + bottom, filterHeight, strideHeight, dilationHeight);
  const columns = size(width + left + right, filterWidth, strideWidth, dilationWidth);
  const pixels = batch * rows * columns;
  const taps = filterHeight * filterWidth * channels;
  const most = Math.max(LEAST_PIXELS, Math.min(MOST_PIXELS, MOST_FLOATS / taps));
  return {
    ...{ batch, height, width, channels, outputs, top, left, bottom, right, rows, columns, pixels, taps },
    filter: [filterHeight, filterWidth],
    stride: [strideHeight, strideWidth],
    dilation: [dilationHeight, dilationWidth],
    block: Math.min(upTo(ROWS, pixels), Math.floor(most / ROWS) * ROWS),
  };
}

/** True if the surroundings of a pixel are its own values. */
function isPointwise({ filter, stride, top, left, bottom, right }: Shape): boolean {
  const isOne = [...filter, ...stride].every((one) => one === 1);
  return isOne && [top, left, bottom, right].every((pad) => pad === 0);
}

/** y of the others; all are addresses. */
export function forward(heap: Heap, s: Shape, x: number, filter: number, y: number, bias?: number): void {
  const wide = upTo(PANEL, s.outputs);
  const [panels, start, zeros, surroundings, edge] = heap.regions(
    ...[wide * s.taps, wide, s.channels, s.block * s.taps, s.block * PANEL],
  );
  pack(heap, { address: filter, row: s.outputs, column: 1 }, s.taps, s.outputs, panels);
  heap.floats(start, wide).fill(0);
  if (bias !== undefined) heap.run.copyRuns(1, s.outputs, bias, 0, start, 0);
  heap.floats(zeros, s.channels).fill(0);
  for (let first = 0; first < s.pixels; first += s.block) {
    const m = Math.min(s.block, s.pixels - first);
    // Products read whole groups of rows, which may end behind the heap.
    const isInPlace = isPointwise(s) && m % ROWS === 0;
    if (!isInPlace) gather(heap, s, first, m, x, zeros, surroundings, s.taps);
    const address = isInPlace ? x + first * s.taps * BYTES : surroundings;
    const a = { address, row: s.taps, column: 1 };
    multiply(heap, { m, n: s.outputs, k: s.taps, a, panels, start, c: y + first * s.outputs * BYTES, edge });
  }
}

export function toInput(heap: Heap, s: Shape, dx: number, filter: number, dy: number): void {
  const wide = upTo(PANEL, s.taps);
  const [panels, start, surroundings, edge, last] = heap.regions(
    ...[wide * s.outputs, wide, s.block * s.taps, s.block * PANEL, s.block * s.outputs],
  );
  pack(heap, { address: filter, row: 1, column: s.outputs }, s.outputs, s.taps, panels);
  heap.floats(start, wide).fill(0);
  heap.floats(dx, s.batch * s.height * s.width * s.channels).fill(0);
  for (let first = 0; first < s.pixels; first += s.block) {
    const m = Math.min(s.block, s.pixels - first);
    let address = dy + first * s.outputs * BYTES;
    if (m % ROWS !== 0) {
      // Rows behind the last are read, which may be behind the heap.
      heap.run.copyRuns(1, m * s.outputs, address, 0, last, 0);
      address = last;
    }
    const a = { address, row: s.outputs, column: 1 };
    const c = isPointwise(s) ? dx + first * s.taps * BYTES : surroundings;
    multiply(heap, { m, n: s.taps, k: s.outputs, a, panels, start, c, edge });
    if (c !== surroundings) continue;
    forEachRun(s, first, m, ({ isInside, count, pixel, step, row, tap }) => {
      if (!isInside) return;
      const from = surroundings + (row * s.taps + tap) * BYTES;
      heap.run.addRuns(count, s.channels, from, s.taps * BYTES, dx + pixel * BYTES, step * BYTES);
    });
  }
}

export function toFilter(heap: Heap, shape: Shape, x: number, dw: number, dy: number): void {
  // Each block reads and writes all sums, so it has more pixels than fit into the cache.
  const s = { ...shape, block: Math.min(upTo(ROWS, shape.pixels), MOST_PIXELS) };
  const [tall, wide] = [upTo(ROWS, s.taps), upTo(PANEL, s.outputs)];
  // Rows that are a power of two apart would share the same few lines of the cache.
  const row = tall + SKEW;
  const [sums, total, zeros, panels, surroundings] = heap.regions(
    ...[tall * wide, tall * wide, s.channels, wide * s.block, s.block * row],
  );
  const sum = blockedSum(heap, tall * wide, sums, total);
  heap.floats(zeros, s.channels).fill(0);
  for (let first = 0; first < s.pixels; first += s.block) {
    const k = Math.min(s.block, s.pixels - first);
    gather(heap, s, first, k, x, zeros, surroundings, row);
    const gradients = { address: dy + first * s.outputs * BYTES, row: s.outputs, column: 1 };
    pack(heap, gradients, k, s.outputs, panels);
    for (let o = 0; o < s.outputs; o += PANEL)
      heap.run.multiplyPanel(
        ...[tall, 1, k, surroundings, BYTES, row * BYTES, 0, ROWS * BYTES],
        ...[panels + o * k * BYTES, PANEL * BYTES, sums + o * BYTES, wide * BYTES, 0],
      );
    sum.added();
  }
  sum.finish();
  heap.run.copyRuns(s.taps, s.outputs, total, wide * BYTES, dw, s.outputs * BYTES);
}

/** The surroundings of `count` pixels from `first` on, one row of `width` floats each. `zeros` are as many as channels. */
function gather(
  { run }: Heap,
  s: Shape,
  ...[first, count, x, zeros, to, width]: [number, number, number, number, number, number]
): void {
  forEachRun(s, first, count, ({ isInside, count, pixel, step, row, tap }) => {
    const [from, distance] = isInside ? [x + pixel * BYTES, step * BYTES] : [zeros, 0];
    run.copyRuns(count, s.channels, from, distance, to + (row * width + tap) * BYTES, width * BYTES);
  });
}

/** Neighbouring pixels of the output, and where one tap of the filter meets the input for them. */
interface Run {
  isInside: boolean;
  count: number;
  /** The first value in the input, and the distance from pixel to pixel. */
  pixel: number;
  step: number;
  /** The first row of the surroundings, and the first value in it. */
  row: number;
  tap: number;
}

function forEachRun(s: Shape, first: number, count: number, visit: (run: Run) => void): void {
  const [strideY, strideX] = s.stride;
  const step = strideX * s.channels;
  for (let done = 0; done < count; ) {
    const line = Math.floor((first + done) / s.columns);
    const begin = (first + done) % s.columns;
    const end = Math.min(s.columns, begin + count - done);
    const image = Math.floor(line / s.rows);
    const within = (column: number) => Math.max(begin, Math.min(end, column));
    for (let i = 0; i < s.filter[0]; i++) {
      const y = (line % s.rows) * strideY - s.top + i * s.dilation[0];
      for (let j = 0; j < s.filter[1]; j++) {
        const tap = (i * s.filter[1] + j) * s.channels;
        const shift = j * s.dilation[1] - s.left;
        // Columns from `low` to `high` meet the input.
        const low = y < 0 || y >= s.height ? end : within(Math.ceil(-shift / strideX));
        const high = Math.max(low, within(Math.ceil((s.width - shift) / strideX)));
        const send = (isInside: boolean, from: number, to: number) => {
          if (from === to) return;
          const pixel = ((image * s.height + y) * s.width + from * strideX + shift) * s.channels;
          visit({ isInside, count: to - from, pixel, step, row: done + from - begin, tap });
        };
        send(false, begin, low);
        send(true, low, high);
        send(false, high, end);
      }
    }
    done += end - begin;
  }
}
