/** Runs bilinear.wat (WebAssembly SIMD) over the squares of a control grid that it supports. */

import { loadWasmKernel } from '../../utils/wasm-loader.js';
import { bytesPerSample, dataTypeOf, isFloat, minValue, viewPixels } from '../pixels/data-types.js';
import type { PixelArray } from '../raster.js';
import type { ControlGrid } from './control-grid.js';
import type { SourceWindow } from './nearest.js';
import type { GridSquares } from './squares.js';

/** Exports of bilinear.wat, which describes them. */
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

/** One for each thread. Its memory holds one row of squares of the result, then the source of one band of one cell. */
const kernel = loadWasmKernel<Kernel>(new URL('./bilinear.wasm', import.meta.url));

const PAGE = 65_536;
/** Limit of the source, so that a thread's memory stays small. The plain kernel does larger ones. */
const MAX_SOURCE_BYTES = 2 ** 26;
/** Source pixels per pixel of the result. Above this limit, copying them costs more than the kernel saves. */
const MAX_SOURCE_PIXELS_PER_OUTPUT = 6;
/** Pixels after the last one: more than the kernel reads beyond it. */
const PADDING_PIXELS = 16;

/**
 * Interpolates the rows of squares whose pixels all lie between four pixels with data, and finds rows without any data. Its
 * means differ from those of the plain kernel by at most one unit and 2 ** -13 of the difference between neighbouring pixels.
 */
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
    // One row of squares at a time, so that the destination stays in the processor's cache.
    out.set(copy.subarray(0, rows * width), j * step * width);
  }
}

/**
 * Layout of the needed part of the source, after `after` pixels: its first pixel, the pixels from row to row, and the total
 * size. V8 copies shared memory by the byte unless each row starts at the same offset within 8 bytes in both memories.
 */
function copySource({ pixels, width }: SourceWindow, needed: GridSquares['sourceBounds'], after: number) {
  const word = 8 / pixels.BYTES_PER_ELEMENT;
  const upTo = (least: number, like: number) => least + ((((like - least) % word) + word) % word);
  const first = pixels.byteOffset / pixels.BYTES_PER_ELEMENT + needed.top * width + needed.left;
  const start = upTo(after, first);
  const stride = upTo(needed.right - needed.left, width);
  return { start, stride, size: start + stride * (needed.bottom - needed.top) + PADDING_PIXELS };
}
