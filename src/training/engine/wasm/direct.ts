/**
 * Convolutions without dilation: the inputs of a pixel are a run of neighbouring values in each row of the filter, so products read them where they
 * are, and only padding takes a copy.
 */
import type { Shape } from './convolution.js';
import { BYTES, type Heap, upTo } from './heap.js';
import { PANEL, pack, ROWS } from './products.js';

const PANEL_BYTES = PANEL * BYTES;
/** Floats of an image that the second cache should hold beside a panel of the filter. */
const BLOCK = 2 ** 16;
/** Pixels of a product by the filter, whose inputs the first cache should hold. */
const MOST_PIXELS = 128;

/** Whether the pixels of a row fill the registers of a product. */
export function isDirect({ filter, dilation, outputs, columns }: Shape): boolean {
  const isDense = filter.every((taps, axis) => taps === 1 || dilation[axis] === 1);
  return isDense && outputs % PANEL === 0 && columns >= ROWS;
}

/** Whether each pixel of the input belongs to one pixel of the output, so that gradients by the input need no sums. */
export function isPatchwise(s: Shape): boolean {
  const isExact = s.rows * s.filter[0] === s.height && s.columns * s.filter[1] === s.width;
  const isApart = s.filter.every((taps, axis) => taps === s.stride[axis]);
  return isDirect(s) && isExact && isApart && (s.filter[1] * s.channels) % PANEL === 0;
}

export function forward(heap: Heap, s: Shape, x: number, filter: number, y: number, bias?: number): void {
  const run = s.filter[1] * s.channels;
  const taps = s.filter[0] * run;
  const [panels, start, copy] = heap.regions(taps * s.outputs, s.outputs, paddedSize(s));
  pack(heap, { address: filter, row: s.outputs, column: 1 }, taps, s.outputs, panels);
  heap.floats(start, s.outputs).fill(0);
  if (bias !== undefined) heap.run.copyRuns(1, s.outputs, bias, 0, start, 0);
  const { address, row, image } = padded(heap, s, x, copy);
  const pixel = s.stride[1] * s.channels * BYTES;
  const lines = s.batch * s.rows;
  const block = Math.max(1, Math.floor((BLOCK * BYTES) / (s.stride[0] * row)));
  for (let first = 0; first < lines; first += block)
    for (let o = 0; o < s.outputs; o += PANEL)
      for (let line = first; line < Math.min(lines, first + block); line++) {
        const from = address + Math.floor(line / s.rows) * image + (line % s.rows) * s.stride[0] * row;
        // The last pixels of a row are computed twice if they are not a multiple of four.
        for (const [column, count] of partsOfRow(s.columns))
          heap.run.multiplyPanel(
            ...[count, s.filter[0], run, from + column * pixel, pixel, BYTES, row, ROWS * pixel],
            ...[panels + o * taps * BYTES, PANEL_BYTES],
            ...[
              y + ((line * s.columns + column) * s.outputs + o) * BYTES,
              s.outputs * BYTES,
              start + o * BYTES,
            ],
          );
      }
}

/** Of patches that do not overlap. */
export function toInput(heap: Heap, s: Shape, dx: number, filter: number, dy: number): void {
  const run = s.filter[1] * s.channels;
  const size = run * s.outputs;
  const [panels, zeros] = heap.regions(s.filter[0] * size, PANEL);
  heap.floats(zeros, PANEL).fill(0);
  for (let i = 0; i < s.filter[0]; i++)
    pack(
      heap,
      { address: filter + i * size * BYTES, row: 1, column: s.outputs },
      s.outputs,
      run,
      panels + i * size * BYTES,
    );
  const pixel = s.outputs * BYTES;
  for (let line = 0; line < s.batch * s.rows; line++)
    for (let i = 0; i < s.filter[0]; i++)
      for (let c = 0; c < run; c += PANEL)
        for (const [column, count] of partsOfRow(s.columns))
          heap.run.multiplyPanel(
            ...[count, 1, s.outputs, dy + (line * s.columns + column) * pixel, pixel, BYTES, 0, ROWS * pixel],
            ...[panels + (i * size + c * s.outputs) * BYTES, PANEL_BYTES],
            ...[dx + (((line * s.filter[0] + i) * s.columns + column) * run + c) * BYTES, run * BYTES, zeros],
          );
}

export function toFilter(heap: Heap, s: Shape, x: number, dw: number, dy: number): void {
  const run = s.filter[1] * s.channels;
  const tall = upTo(ROWS, run);
  const rows = Math.max(1, Math.floor(MOST_PIXELS / s.columns));
  const width = Math.min(s.columns, MOST_PIXELS);
  const [sums, panels, copy] = heap.regions(
    s.filter[0] * tall * s.outputs,
    rows * width * s.outputs,
    paddedSize(s),
  );
  heap.floats(sums, s.filter[0] * tall * s.outputs).fill(0);
  const { address, row, image } = padded(heap, s, x, copy);
  const pixel = s.stride[1] * s.channels * BYTES;
  for (let n = 0; n < s.batch; n++)
    for (let first = 0; first < s.rows; first += rows)
      for (let column = 0; column < s.columns; column += width) {
        const [chunks, k] = [Math.min(rows, s.rows - first), Math.min(width, s.columns - column)];
        const gradients = dy + ((n * s.rows + first) * s.columns + column) * s.outputs * BYTES;
        pack(heap, { address: gradients, row: s.outputs, column: 1 }, chunks * k, s.outputs, panels);
        for (let i = 0; i < s.filter[0]; i++) {
          const from = address + n * image + (first * s.stride[0] + i) * row + column * pixel;
          for (let o = 0; o < s.outputs; o += PANEL)
            heap.run.multiplyPanel(
              ...[tall, chunks, k, from, BYTES, pixel, s.stride[0] * row, ROWS * BYTES],
              ...[panels + o * chunks * k * BYTES, PANEL_BYTES],
              ...[sums + (i * tall * s.outputs + o) * BYTES, s.outputs * BYTES, 0],
            );
        }
      }
  for (let i = 0; i < s.filter[0]; i++) {
    const [from, to] = [sums + i * tall * s.outputs * BYTES, dw + i * run * s.outputs * BYTES];
    heap.run.copyRuns(1, run * s.outputs, from, 0, to, 0);
  }
}

/** First column and number of columns of at most two products, each a multiple of four. */
function partsOfRow(columns: number): [number, number][] {
  const whole = columns - (columns % ROWS);
  return whole === columns
    ? [[0, whole]]
    : [
        [0, whole],
        [columns - ROWS, ROWS],
      ];
}

const isPadded = ({ top, left, bottom, right }: Shape) => top + left + bottom + right > 0;

/** Reads of the last run may reach so many floats too far. */
const SLACK = ROWS;

/** Floats of a padded copy; 0 if none is needed. */
function paddedSize(s: Shape): number {
  const isWhole = (s.filter[1] * s.channels) % ROWS === 0;
  if (isWhole && !isPadded(s)) return 0;
  return s.batch * (s.top + s.height + s.bottom) * (s.left + s.width + s.right) * s.channels + SLACK;
}

/** Returns the image with its padding, copied to `copy` if needed. Distances are in bytes. */
function padded(
  heap: Heap,
  s: Shape,
  x: number,
  copy: number,
): { address: number; row: number; image: number } {
  const size = paddedSize(s);
  const row = (s.left + s.width + s.right) * s.channels * BYTES;
  const image = (s.top + s.height + s.bottom) * row;
  if (size === 0) return { address: x, row, image };
  heap.floats(copy, size).fill(0);
  const own = s.width * s.channels;
  for (let n = 0; n < s.batch; n++)
    heap.run.copyRuns(
      ...[s.height, own, x + n * s.height * own * BYTES, own * BYTES],
      ...[copy + n * image + s.top * row + s.left * s.channels * BYTES, row],
    );
  return { address: copy, row, image };
}
