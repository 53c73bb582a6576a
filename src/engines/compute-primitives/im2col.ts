/**
 * Convolutions on the heap as matrix products (im2col): the inputs of each pixel form a row of a matrix [pixels,taps], which is
 * multiplied with the filter [taps,outputs].
 */
import { blockedSum, gemm, PANEL_ROWS, PANEL_WIDTH, packPanels } from './gemm.js';
import { FLOAT32_BYTES, roundUpTo, type WasmHeap } from './heap.js';

/** Pixels of a product, whose inputs should fit into the second-level cache. */
const MAX_PIXELS = 128;
const MIN_PIXELS = 32;
const MAX_FLOATS = 2 ** 17;
/** A cache line, in floats. */
const SKEW = 16;

export interface ConvolutionShape {
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
  /** Size of the output. */
  rows: number;
  columns: number;
  pixels: number;
  /** Number of input values of each output pixel. */
  taps: number;
  /** Pixels of a product. */
  block: number;
}

/** A convolution or one of its gradients; `x`, `filter`, `y` and `bias` are addresses on the heap. */
export type Convolution = (
  heap: WasmHeap,
  s: ConvolutionShape,
  x: number,
  filter: number,
  y: number,
  bias?: number,
) => void;

/** The geometry is that of `ComputePrimitives.convolve`. */
export function convolutionShape(geometry: Int32Array): ConvolutionShape {
  const [batch, height, width, channels, outputs, ...rest] = geometry;
  const [filterHeight, filterWidth, strideHeight, strideWidth, dilationHeight, dilationWidth] = rest;
  const [top, left, bottom, right] = rest.slice(6);
  const size = (length: number, filter: number, stride: number, dilation: number) =>
    Math.floor((length - ((filter - 1) * dilation + 1)) / stride) + 1;
  const rows = size(height + top + bottom, filterHeight, strideHeight, dilationHeight);
  const columns = size(width + left + right, filterWidth, strideWidth, dilationWidth);
  const pixels = batch * rows * columns;
  const taps = filterHeight * filterWidth * channels;
  const most = Math.max(MIN_PIXELS, Math.min(MAX_PIXELS, MAX_FLOATS / taps));
  return {
    batch,
    height,
    width,
    channels,
    outputs,
    top,
    left,
    bottom,
    right,
    rows,
    columns,
    pixels,
    taps,
    filter: [filterHeight, filterWidth],
    stride: [strideHeight, strideWidth],
    dilation: [dilationHeight, dilationWidth],
    block: Math.min(roundUpTo(PANEL_ROWS, pixels), Math.floor(most / PANEL_ROWS) * PANEL_ROWS),
  };
}

/** True if each output pixel depends only on the input pixel at the same position. */
function isPointwise({ filter, stride, top, left, bottom, right }: ConvolutionShape): boolean {
  const isOne = [...filter, ...stride].every((one) => one === 1);
  return isOne && [top, left, bottom, right].every((pad) => pad === 0);
}

/** Computes y. `x`, `filter`, `y` and `bias` are addresses. */
export const forward: Convolution = (heap, s, x, filter, y, bias) => {
  const wide = roundUpTo(PANEL_WIDTH, s.outputs);
  const [panels, start, zeros, patches, edge] = heap.scratch(
    wide * s.taps,
    wide,
    s.channels,
    s.block * s.taps,
    s.block * PANEL_WIDTH,
  );
  packPanels(heap, { address: filter, row: s.outputs, column: 1 }, s.taps, s.outputs, panels);
  heap.float32View(start, wide).fill(0);
  if (bias !== undefined) heap.run.copyRuns(1, s.outputs, bias, 0, start, 0);
  heap.float32View(zeros, s.channels).fill(0);
  for (let first = 0; first < s.pixels; first += s.block) {
    const m = Math.min(s.block, s.pixels - first);
    // Products read complete groups of rows, which may extend beyond the heap.
    const isInPlace = isPointwise(s) && m % PANEL_ROWS === 0;
    if (!isInPlace) im2col(heap, s, first, m, x, zeros, patches, s.taps);
    const address = isInPlace ? x + first * s.taps * FLOAT32_BYTES : patches;
    const a = { address, row: s.taps, column: 1 };
    gemm(heap, {
      m,
      n: s.outputs,
      k: s.taps,
      a,
      panels,
      start,
      c: y + first * s.outputs * FLOAT32_BYTES,
      edge,
    });
  }
};

export const inputGradient: Convolution = (heap, s, dx, filter, dy) => {
  const wide = roundUpTo(PANEL_WIDTH, s.taps);
  const [panels, start, patches, edge, last] = heap.scratch(
    wide * s.outputs,
    wide,
    s.block * s.taps,
    s.block * PANEL_WIDTH,
    s.block * s.outputs,
  );
  packPanels(heap, { address: filter, row: 1, column: s.outputs }, s.outputs, s.taps, panels);
  heap.float32View(start, wide).fill(0);
  heap.float32View(dx, s.batch * s.height * s.width * s.channels).fill(0);
  for (let first = 0; first < s.pixels; first += s.block) {
    const m = Math.min(s.block, s.pixels - first);
    let address = dy + first * s.outputs * FLOAT32_BYTES;
    if (m % PANEL_ROWS !== 0) {
      // Rows after the last one are read, which may be beyond the heap.
      heap.run.copyRuns(1, m * s.outputs, address, 0, last, 0);
      address = last;
    }
    const a = { address, row: s.outputs, column: 1 };
    const c = isPointwise(s) ? dx + first * s.taps * FLOAT32_BYTES : patches;
    gemm(heap, { m, n: s.taps, k: s.outputs, a, panels, start, c, edge });
    if (c !== patches) continue;
    forEachRun(s, first, m, ({ isInside, count, pixel, step, row, tap }) => {
      if (!isInside) return;
      const from = patches + (row * s.taps + tap) * FLOAT32_BYTES;
      heap.run.addRuns(
        count,
        s.channels,
        from,
        s.taps * FLOAT32_BYTES,
        dx + pixel * FLOAT32_BYTES,
        step * FLOAT32_BYTES,
      );
    });
  }
};

export const filterGradient: Convolution = (heap, shape, x, dw, dy) => {
  // Each block reads and writes all sums, so it has more pixels than fit into the cache.
  const s = { ...shape, block: Math.min(roundUpTo(PANEL_ROWS, shape.pixels), MAX_PIXELS) };
  const [tall, wide] = [roundUpTo(PANEL_ROWS, s.taps), roundUpTo(PANEL_WIDTH, s.outputs)];
  // Padded, because rows at a distance of a power of two would share the same few cache lines.
  const row = tall + SKEW;
  const [sums, total, zeros, panels, patches] = heap.scratch(
    tall * wide,
    tall * wide,
    s.channels,
    wide * s.block,
    s.block * row,
  );
  const sum = blockedSum(heap, tall * wide, sums, total);
  heap.float32View(zeros, s.channels).fill(0);
  for (let first = 0; first < s.pixels; first += s.block) {
    const k = Math.min(s.block, s.pixels - first);
    im2col(heap, s, first, k, x, zeros, patches, row);
    const gradients = { address: dy + first * s.outputs * FLOAT32_BYTES, row: s.outputs, column: 1 };
    packPanels(heap, gradients, k, s.outputs, panels);
    for (let o = 0; o < s.outputs; o += PANEL_WIDTH)
      heap.run.multiplyPanel(
        tall,
        1,
        k,
        patches,
        FLOAT32_BYTES,
        row * FLOAT32_BYTES,
        0,
        PANEL_ROWS * FLOAT32_BYTES,
        panels + o * k * FLOAT32_BYTES,
        PANEL_WIDTH * FLOAT32_BYTES,
        sums + o * FLOAT32_BYTES,
        wide * FLOAT32_BYTES,
        0,
      );
    sum.added();
  }
  sum.finish();
  heap.run.copyRuns(s.taps, s.outputs, total, wide * FLOAT32_BYTES, dw, s.outputs * FLOAT32_BYTES);
};

/**
 * Copies the inputs of `count` pixels from `first` on, one row of `width` floats for each pixel. `zeros`: an address with one zero for
 * each channel.
 */
function im2col(
  { run }: WasmHeap,
  s: ConvolutionShape,
  first: number,
  count: number,
  x: number,
  zeros: number,
  to: number,
  width: number,
): void {
  forEachRun(s, first, count, ({ isInside, count, pixel, step, row, tap }) => {
    const [from, distance] = isInside ? [x + pixel * FLOAT32_BYTES, step * FLOAT32_BYTES] : [zeros, 0];
    run.copyRuns(
      count,
      s.channels,
      from,
      distance,
      to + (row * width + tap) * FLOAT32_BYTES,
      width * FLOAT32_BYTES,
    );
  });
}

/** Consecutive output pixels, and the position of one tap of the filter in the input for them. */
interface PixelRun {
  isInside: boolean;
  count: number;
  /** First value in the input, and distance between pixels. */
  pixel: number;
  step: number;
  /** First row of the matrix, and first column in it. */
  row: number;
  tap: number;
}

function forEachRun(s: ConvolutionShape, first: number, count: number, visit: (run: PixelRun) => void): void {
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
        // Columns from `low` to `high` are inside the input.
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
