/** Runs bilinear.wat, WebAssembly SIMD, over those squares of a control grid that it can do. */

import {
  bytesPerSample,
  dataTypeOf,
  isFloat,
  loadWasmKernel,
  minValue,
  viewPixels,
} from '../pixels/index.js';
import type { PixelArray } from '../types.js';
import type { ControlGrid } from './control-grid.js';
import type { GridSquares } from './grid-squares.js';
import type { SourceWindow } from './nearest.js';

/** What bilinear.wat exports. */
interface Kernel {
  memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  begin(
    source: number,
    stride: number,
    outStride: number,
    bytes: number,
    bias: number,
    nodata: number,
    notHole: number,
    holes: number,
  ): void;
  readonly blank: { readonly value: number };
  square(
    out: number,
    rows: number,
    count: number,
    logStep: number,
    ...nodes: [number, number, number, number, number, number, number, number]
  ): number;
}

/** One for each thread; its memory holds a row of squares of the result, and after it the source of one band of one cell. */
const kernel = loadWasmKernel<Kernel>(new URL('./bilinear.wasm', import.meta.url));

const PAGE = 65_536;
/** Bytes that the source may have: more is for the plain kernel, so that a thread's memory stays small. */
const MAX_SOURCE_BYTES = 2 ** 26;
/** Source pixels a pixel of the result that may be copied: with more, the copy costs more than it saves. */
const MAX_SOURCE_PIXELS_PER_OUTPUT = 6;
/** Pixels after the last: more than is read beyond it. */
const PADDING_PIXELS = 16;

/** Does the rows of squares of which all pixels lie between four pixels with data, and finds those that are blank. */
export function bilinearWasm(
  source: SourceWindow,
  grid: ControlGrid,
  { interior, outside, pending, x, y, sourceBounds }: GridSquares,
  out: PixelArray,
  notHole: number,
): void {
  const { pixels, nodata } = source;
  const dataType = dataTypeOf(pixels);
  const bytes = bytesPerSample(dataType);
  if (!kernel || isFloat(dataType) || bytes > 2) return;
  const { step, columns, width, height } = grid;
  const { start, stride, size } = copySource(source, sourceBounds, step * width);
  if (
    sourceBounds.right <= sourceBounds.left ||
    size - start > MAX_SOURCE_PIXELS_PER_OUTPUT * out.length ||
    size * bytes > MAX_SOURCE_BYTES
  )
    return;

  const { memory, begin, square, blank: found } = kernel;
  const lacking = size * bytes - memory.buffer.byteLength;
  if (lacking > 0) memory.grow(Math.ceil(lacking / PAGE));
  const copy = viewPixels(dataType, memory.buffer, 0, size);
  for (let row = sourceBounds.top, to = start; row < sourceBounds.bottom; row++, to += stride) {
    copy.set(
      pixels.subarray(row * source.width + sourceBounds.left, row * source.width + sourceBounds.right),
      to,
    );
  }
  const bias = minValue(dataType) === 0 ? 0x8000 : 0;
  const inside = (value: number) => ((bytes === 1 ? value << 8 : value) ^ bias) & 0xffff;
  const hasHole = !Number.isNaN(nodata);
  begin(
    (start - sourceBounds.top * stride - sourceBounds.left) * bytes,
    stride * bytes,
    width * bytes,
    bytes,
    bias,
    hasHole ? inside(nodata) : 0,
    hasHole ? inside(notHole) : 0,
    hasHole ? 1 : 0,
  );
  const logStep = Math.log2(step);
  for (let j = 0, at = 0; j < grid.rows - 1; j++) {
    const rows = Math.min(step, height - j * step);
    for (let i = 0; i < columns - 1; i++, at++) {
      const count = Math.min(step, width - i * step);
      if (interior[at] === 0 || count < 8) continue;
      const a = j * columns + i;
      const b = a + 1;
      const c = a + columns;
      const d = c + 1;
      const touched = square(
        i * step * bytes,
        rows,
        count,
        logStep,
        x[a],
        x[b],
        x[c],
        x[d],
        y[a],
        y[b],
        y[c],
        y[d],
      );
      if (touched !== 0) outside[at] = found.value;
      pending[at] = touched & ~outside[at];
    }
    // Row by row of squares, so that the processor's cache keeps where they are written.
    out.set(copy.subarray(0, rows * width), j * step * width);
  }
}

/**
 * Where the needed part of the source goes, after `after` pixels: its first pixel, pixels from row to row, and the size of it
 * all. V8 copies shared memory by the byte, unless each row begins at the same place in a word of both memories.
 */
function copySource({ pixels, width }: SourceWindow, needed: GridSquares['sourceBounds'], after: number) {
  const word = 8 / pixels.BYTES_PER_ELEMENT;
  const upTo = (least: number, like: number) => least + ((((like - least) % word) + word) % word);
  const first = pixels.byteOffset / pixels.BYTES_PER_ELEMENT + needed.top * width + needed.left;
  const start = upTo(after, first);
  const stride = upTo(needed.right - needed.left, width);
  return { start, stride, size: start + stride * (needed.bottom - needed.top) + PADDING_PIXELS };
}
