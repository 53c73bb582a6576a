/**
 * Convolutions without dilation. The inputs of a pixel are consecutive values in each row of the filter, so products read them in place;
 * only padding requires a copy.
 */
import { blockedSum, PANEL_ROWS, PANEL_WIDTH, packPanels } from './gemm.js';
import { FLOAT32_BYTES, roundUpTo, type WasmHeap } from './heap.js';
import type { Convolution, ConvolutionShape } from './im2col.js';

const PANEL_BYTES = PANEL_WIDTH * FLOAT32_BYTES;
/**
 * Floats of inputs and outputs that should fit into the second-level cache, so that the output panels of a pixel fill its cache lines
 * together.
 */
const BLOCK_FLOATS = 2 ** 16;
/** Pixels of a product by the filter, whose inputs should fit into the first-level cache. */
const MAX_PIXELS = 128;
const MAX_NARROW_PIXELS = 64;

/** True if `forward` and `filterGradient` support it: no dilation, complete panels of outputs, and rows of at least four pixels. */
export function isDirect(s: ConvolutionShape): boolean {
  return isDense(s) && s.outputs % PANEL_WIDTH === 0 && s.columns >= PANEL_ROWS;
}

const isDense = ({ filter, dilation }: ConvolutionShape) =>
  filter.every((taps, axis) => taps === 1 || dilation[axis] === 1);

/** Maximum factor by which `inputGradient` may enlarge a filter, so that the same number of taps reaches every pixel of the input. */
const MAX_FILTER_GROWTH = 1.2;

/** True if `inputGradient` supports it. */
export function isDirectInputGradient(s: ConvolutionShape): boolean {
  const { filter, stride, channels, width } = s;
  const isEven = filter.every((taps, axis) => roundUpTo(stride[axis], taps) <= MAX_FILTER_GROWTH * taps);
  return isEven && isDense(s) && channels % PANEL_WIDTH === 0 && Math.floor(width / stride[1]) >= PANEL_ROWS;
}

export const forward: Convolution = (heap, s, x, filter, y, bias) => {
  const run = s.filter[1] * s.channels;
  const taps = s.filter[0] * run;
  const padding = isPadded(s) ? s : undefined;
  const [panels, start, copy] = heap.scratch(taps * s.outputs, s.outputs, paddedSize(s.batch, s, padding));
  packPanels(heap, { address: filter, row: s.outputs, column: 1 }, taps, s.outputs, panels);
  heap.float32View(start, s.outputs).fill(0);
  if (bias !== undefined) heap.run.copyRuns(1, s.outputs, bias, 0, start, 0);
  const from = padded(heap, s.batch, s, x, padding, copy);
  convolveRows(heap, {
    batch: s.batch,
    rows: s.rows,
    columns: s.columns,
    chunks: s.filter[0],
    run,
    panels,
    outputs: s.outputs,
    from: { ...from, pixel: s.stride[1] * from.pixel },
    rowStep: s.stride[0] * from.row,
    to: imageStrides(y, { height: s.rows, width: s.columns, channels: s.outputs }),
    start,
    startStep: PANEL_BYTES,
  });
};

/**
 * Pixels of the input at the same position between the steps of the filter form an image: the convolution, with stride 1, of the
 * gradients with every n-th tap in reverse order. If the taps are not a multiple of the stride, the filter is padded with zeros.
 */
export const inputGradient: Convolution = (heap, s, dx, filter, dy) => {
  const [tall, wide] = s.filter.map((taps, axis) => Math.ceil(taps / s.stride[axis]));
  const last = (size: number, pad: number, step: number) => Math.floor((size - 1 + pad) / step);
  const gradients = { height: s.rows, width: s.columns, channels: s.outputs };
  const margins = {
    top: tall - 1,
    left: wide - 1,
    bottom: Math.max(0, last(s.height, s.top, s.stride[0]) - (s.rows - 1)),
    right: Math.max(0, last(s.width, s.left, s.stride[1]) - (s.columns - 1)),
  };
  const padding = isPadded(margins) ? margins : undefined;
  const run = wide * s.outputs;
  const [panels, zeros, copy] = heap.scratch(
    tall * run * s.channels,
    PANEL_WIDTH,
    paddedSize(s.batch, gradients, padding),
  );
  heap.float32View(zeros, PANEL_WIDTH).fill(0);
  const from = padded(heap, s.batch, gradients, dy, padding, copy);
  const to = imageStrides(dx, s);
  const size = s.channels * s.outputs * FLOAT32_BYTES;
  for (let y = 0; y < s.stride[0]; y++)
    for (let x = 0; x < s.stride[1]; x++) {
      for (let c = 0; c < s.channels; c += PANEL_WIDTH)
        for (let i = 0; i < tall; i++)
          for (let j = 0; j < wide; j++) {
            const [row, column] = [y + s.stride[0] * (tall - 1 - i), x + s.stride[1] * (wide - 1 - j)];
            const panel =
              panels + (c * tall * wide + (i * wide + j) * PANEL_WIDTH) * s.outputs * FLOAT32_BYTES;
            if (row >= s.filter[0] || column >= s.filter[1])
              heap.float32View(panel, PANEL_WIDTH * s.outputs).fill(0);
            else
              heap.run.copyStrided(
                s.outputs,
                PANEL_WIDTH,
                filter + (row * s.filter[1] + column) * size + c * s.outputs * FLOAT32_BYTES,
                FLOAT32_BYTES,
                s.outputs * FLOAT32_BYTES,
                panel,
                PANEL_BYTES,
              );
          }
      // First pixel of the input at these taps, and last pixel of the gradients that reaches it.
      const first = (at: number, pad: number, step: number) => Math.max(0, Math.ceil((pad - at) / step));
      const [u, v] = [first(y, s.top, s.stride[0]), first(x, s.left, s.stride[1])];
      const [top, left] = [u * s.stride[0] + y - s.top, v * s.stride[1] + x - s.left];
      convolveRows(heap, {
        batch: s.batch,
        rows: Math.max(0, Math.ceil((s.height - top) / s.stride[0])),
        columns: Math.max(0, Math.ceil((s.width - left) / s.stride[1])),
        chunks: tall,
        run,
        panels,
        outputs: s.channels,
        start: zeros,
        startStep: 0,
        from: { ...from, address: from.address + u * from.row + v * from.pixel },
        rowStep: from.row,
        to: {
          address: to.address + top * to.row + left * to.pixel,
          row: s.stride[0] * to.row,
          image: to.image,
          pixel: s.stride[1] * to.pixel,
        },
      });
    }
};

/** Address and strides of an image in bytes. */
interface ImageStrides {
  address: number;
  image: number;
  row: number;
  pixel: number;
}

interface Size {
  height: number;
  width: number;
  channels: number;
}

function imageStrides(address: number, { height, width, channels }: Size): ImageStrides {
  const row = width * channels * FLOAT32_BYTES;
  return { address, image: height * row, row, pixel: channels * FLOAT32_BYTES };
}

interface Rows {
  batch: number;
  rows: number;
  columns: number;
  from: ImageStrides;
  to: ImageStrides;
  /** Bytes in the input between consecutive rows of the output. */
  rowStep: number;
  /** Rows of the filter, and values in each row. */
  chunks: number;
  run: number;
  panels: number;
  outputs: number;
  /** Address of the initial values of the sums of the first panel, and the bytes between panels. */
  start: number;
  startStep: number;
}

function convolveRows({ run: { multiplyPanel } }: WasmHeap, p: Rows): void {
  const lines = p.batch * p.rows;
  const parts = partsOfRow(p.columns);
  // A block of rows reads the complete filter, so it is at least as large.
  const floats = Math.max(BLOCK_FLOATS, p.chunks * p.run * p.outputs);
  const block = Math.max(1, Math.floor(floats / (p.rowStep / FLOAT32_BYTES + p.columns * p.outputs)));
  for (let first = 0; first < lines; first += block)
    for (let o = 0; o < p.outputs; o += PANEL_WIDTH)
      for (let line = first; line < Math.min(lines, first + block); line++) {
        const [n, row] = [Math.floor(line / p.rows), line % p.rows];
        const from = p.from.address + n * p.from.image + row * p.rowStep;
        const to = p.to.address + n * p.to.image + row * p.to.row + o * FLOAT32_BYTES;
        // Spreading arrays into arguments would take as long as short products.
        for (const [column, count] of parts)
          multiplyPanel(
            count,
            p.chunks,
            p.run,
            from + column * p.from.pixel,
            p.from.pixel,
            FLOAT32_BYTES,
            p.from.row,
            PANEL_ROWS * p.from.pixel,
            p.panels + o * p.chunks * p.run * FLOAT32_BYTES,
            PANEL_BYTES,
            to + column * p.to.pixel,
            p.to.pixel,
            p.start + (o / PANEL_WIDTH) * p.startStep,
          );
      }
}

export const filterGradient: Convolution = (heap, s, x, dw, dy) => {
  const run = s.filter[1] * s.channels;
  const tall = roundUpTo(PANEL_ROWS, run);
  // Four values at a time are read, also at the end of a run.
  const padding = isPadded(s) || run % PANEL_ROWS !== 0 ? s : undefined;
  const rows = Math.max(1, Math.floor(MAX_PIXELS / s.columns));
  const width = Math.min(s.columns, MAX_PIXELS);
  // The gradients are read in place if they fit into the first-level cache, unless their rows share the same few cache lines.
  const isNarrow = s.outputs <= MAX_NARROW_PIXELS;
  const length = s.filter[0] * tall * s.outputs;
  const [sums, total, panels, copy] = heap.scratch(
    length,
    length,
    rows * width * s.outputs,
    paddedSize(s.batch, s, padding),
  );
  const sum = blockedSum(heap, length, sums, total);
  const { address, row, image } = padded(heap, s.batch, s, x, padding, copy);
  const pixel = s.stride[1] * s.channels * FLOAT32_BYTES;
  for (let n = 0; n < s.batch; n++)
    for (let first = 0; first < s.rows; first += rows)
      for (let column = 0; column < s.columns; column += width) {
        const [chunks, k] = [Math.min(rows, s.rows - first), Math.min(width, s.columns - column)];
        const gradients = dy + ((n * s.rows + first) * s.columns + column) * s.outputs * FLOAT32_BYTES;
        if (!isNarrow)
          packPanels(heap, { address: gradients, row: s.outputs, column: 1 }, chunks * k, s.outputs, panels);
        for (let i = 0; i < s.filter[0]; i++) {
          const from = address + n * image + (first * s.stride[0] + i) * row + column * pixel;
          for (let o = 0; o < s.outputs; o += PANEL_WIDTH)
            heap.run.multiplyPanel(
              tall,
              chunks,
              k,
              from,
              FLOAT32_BYTES,
              pixel,
              s.stride[0] * row,
              PANEL_ROWS * FLOAT32_BYTES,
              isNarrow ? gradients + o * FLOAT32_BYTES : panels + o * chunks * k * FLOAT32_BYTES,
              isNarrow ? s.outputs * FLOAT32_BYTES : PANEL_BYTES,
              sums + (i * tall * s.outputs + o) * FLOAT32_BYTES,
              s.outputs * FLOAT32_BYTES,
              0,
            );
        }
        sum.added();
      }
  sum.finish();
  for (let i = 0; i < s.filter[0]; i++) {
    const [from, to] = [
      total + i * tall * s.outputs * FLOAT32_BYTES,
      dw + i * run * s.outputs * FLOAT32_BYTES,
    ];
    heap.run.copyRuns(1, run * s.outputs, from, 0, to, 0);
  }
};

/**
 * Returns first column and number of columns of at most two products, each a multiple of four columns; if needed, the last columns are
 * computed twice.
 */
function partsOfRow(columns: number): [number, number][] {
  const aligned = columns - (columns % PANEL_ROWS);
  const first: [number, number] = [0, aligned];
  return aligned === columns ? [first] : [first, [columns - PANEL_ROWS, PANEL_ROWS]];
}

type Padding = Pick<ConvolutionShape, 'top' | 'left' | 'bottom' | 'right'>;

const isPadded = ({ top, left, bottom, right }: Padding) => top + left + bottom + right > 0;

/** Returns the number of floats of a padded copy, if there is one. Reads of the last run may exceed it by a few floats. */
function paddedSize(batch: number, { height, width, channels }: Size, pad: Padding | undefined): number {
  if (!pad) return 0;
  return batch * (pad.top + height + pad.bottom) * (pad.left + width + pad.right) * channels + PANEL_ROWS;
}

/** Returns the image, or its padded copy at `copy`. */
function padded(
  heap: WasmHeap,
  batch: number,
  size: Size,
  address: number,
  pad: Padding | undefined,
  copy: number,
): ImageStrides {
  const own = imageStrides(address, size);
  if (!pad) return own;
  const { height, width, channels } = size;
  heap.float32View(copy, paddedSize(batch, size, pad)).fill(0);
  const extent = { height: pad.top + height + pad.bottom, width: pad.left + width + pad.right, channels };
  const to = imageStrides(copy, extent);
  for (let n = 0; n < batch; n++)
    heap.run.copyRuns(
      height,
      width * channels,
      address + n * own.image,
      own.row,
      copy + n * to.image + pad.top * to.row + pad.left * to.pixel,
      to.row,
    );
  return to;
}
