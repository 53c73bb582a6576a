/** Spectra of 64 pixels in the memory of the kernel of panel.wat, and matrix products with them. */
import type { PixelArray } from '../../raster/index.js';
import { loadWasmKernel } from '../../utils/wasm-loader.js';
import { noSimd } from '../errors.js';
import type { ValueEncoding } from '../sums.js';

interface Kernel {
  memory: { buffer: ArrayBuffer; grow(pages: number): void };
  decode(
    stored: number,
    stride: number,
    type: number,
    coding: number,
    out: number,
    bytes: number,
    bands: number,
  ): void;
  multiply(pixels: number, weights: number, out: number, bands: number): void;
  multiply64(pixels: number, weights: number, out: number, bands: number): void;
  squares(pixels: number, out: number, bands: number): void;
  squares64(pixels: number, out: number, bands: number): void;
  angles(
    products: number,
    squares: number,
    pixels: number,
    weights: number,
    rows: number,
    bands: number,
  ): void;
}

/** Pixels of a panel. */
export const PANEL_PIXELS = 64;
/** Rows of a matrix in one call of the kernel. */
const CALL_ROWS = 4;
const PAGE_BYTES = 65_536;

/** `rows` values of 64 pixels: value r of pixel i is `values[r * 64 + i]`. */
interface Plane {
  readonly at: number;
  readonly rows: number;
}

/** A matrix in the memory of the kernel. */
export interface PanelMatrix {
  readonly at: number;
  readonly columns: number;
  /** Number of groups of 4 rows. */
  readonly groups: number;
  /** The columns [start, end) of each group that are not all 0. */
  readonly starts: number[];
  readonly ends: number[];
  readonly out: Plane;
}

/** Types of stored numbers that the kernel decodes, in the order of its type codes. */
const DECODED_TYPES = [Int16Array, Uint16Array, Float32Array];
/** Pixels whose stored numbers are in the memory of the kernel. Those of some hundred bands fit into the cache. */
const WINDOW_PIXELS = 8 * PANEL_PIXELS;
/** Distance between bands. With a power of two, bands would share few cache lines. */
const BAND_STRIDE = WINDOW_PIXELS + 32;
const MAX_VALUE_BYTES = 4;

/**
 * Invariants: memory up to `end` belongs to the panel, its matrices and their products. It grows only before the first pixels are loaded,
 * so views of it stay valid. `window` contains the numbers of `held.bands` from pixel `held.start` on.
 */
export class PixelPanel {
  readonly pixels: Plane;
  private readonly kernel: Kernel;
  private readonly bands: number;
  /** Physical value minus the centre = stored * scale + shift. */
  private readonly scales: readonly number[];
  private readonly shifts: Float64Array;
  private readonly coding: number;
  private readonly window: number;
  private held: { bands: readonly PixelArray[]; start: number } | undefined;
  private end = 0;

  /** `centre` is subtracted from physical values. `bytes`: size of a value, 4 for f32 or 8 for f64. */
  constructor(
    { scales, offsets }: ValueEncoding,
    centre?: ArrayLike<number>,
    private readonly bytes: 4 | 8 = 4,
  ) {
    const kernel = loadWasmKernel<Kernel>(new URL('./panel.wasm', import.meta.url));
    if (!kernel) throw noSimd();
    this.kernel = kernel;
    const bands = scales.length;
    this.bands = bands;
    this.scales = scales;
    this.shifts = Float64Array.from(offsets, (offset, b) => offset - (centre?.[b] ?? 0));
    this.pixels = this.plane(bands);
    this.coding = this.take(2 * bands * 8);
    new Float64Array(kernel.memory.buffer, this.coding, 2 * bands).set(
      scales.flatMap((scale, b) => [scale, this.shifts[b]]),
    );
    // The kernel reads complete panels, even beyond the last pixel.
    this.window = this.take((bands * BAND_STRIDE + PANEL_PIXELS) * MAX_VALUE_BYTES);
  }

  /** Copies a matrix of `rows` x `columns`, row by row. */
  matrix(values: Float64Array, columns: number): PanelMatrix {
    const matrix = this.emptyMatrix(values.length / columns, columns);
    this.fill(matrix, values);
    return matrix;
  }

  emptyMatrix(rows: number, columns: number): PanelMatrix {
    const groups = Math.ceil(rows / CALL_ROWS);
    const at = this.take(groups * CALL_ROWS * columns * this.bytes);
    const starts = new Array<number>(groups).fill(0);
    const ends = new Array<number>(groups).fill(1);
    return { at, columns, groups, starts, ends, out: this.plane(groups * CALL_ROWS) };
  }

  /** Replaces the numbers of a matrix; `values` may have fewer rows. */
  fill({ at, columns, groups, starts, ends }: PanelMatrix, values: ArrayLike<number>): void {
    const packed = this.view(at, groups * CALL_ROWS * columns);
    starts.fill(columns - 1);
    ends.fill(1);
    for (let i = 0, row = 0; i < values.length; row++) {
      const group = Math.floor(row / CALL_ROWS);
      for (let column = 0; column < columns; column++, i++) {
        const value = values[i];
        packed[(group * columns + column) * CALL_ROWS + (row % CALL_ROWS)] = value;
        if (value === 0) continue;
        starts[group] = Math.min(starts[group], column);
        ends[group] = Math.max(ends[group], column + 1);
      }
    }
    // A group of zeros also takes one column.
    for (const [group, end] of ends.entries()) starts[group] = Math.min(starts[group], end - 1);
  }

  plane(rows: number): Plane {
    return { at: this.take(rows * PANEL_PIXELS * this.bytes), rows };
  }

  values({ at, rows }: Plane): Float32Array | Float64Array {
    return this.view(at, rows * PANEL_PIXELS);
  }

  private view(at: number, length: number): Float32Array | Float64Array {
    const { buffer } = this.kernel.memory;
    return this.bytes === 4 ? new Float32Array(buffer, at, length) : new Float64Array(buffer, at, length);
  }

  /**
   * Loads up to 64 pixels from `indexes[from]` on as physical values minus the centre. Returns their number. The numbers of `bands` must
   * not change between calls with the same array.
   */
  load(bands: readonly PixelArray[], indexes: Int32Array, from: number): number {
    const count = Math.min(PANEL_PIXELS, indexes.length - from);
    const first = indexes[from];
    const type = DECODED_TYPES.findIndex((one) => bands[0] instanceof one);
    const isRun = indexes[from + count - 1] === first + count - 1;
    const start = first - (first % WINDOW_PIXELS);
    if (type >= 0 && isRun && first + count <= start + WINDOW_PIXELS) this.decode(bands, type, start, first);
    else this.gather(bands, indexes, from, count);
    return count;
  }

  private gather(bands: readonly PixelArray[], indexes: Int32Array, from: number, count: number): void {
    const values = this.values(this.pixels);
    for (let b = 0; b < this.bands; b++) {
      const band = bands[b];
      const scale = this.scales[b];
      const shift = this.shifts[b];
      // Computed in f64 and rounded once to f32.
      for (let i = 0; i < count; i++) values[b * PANEL_PIXELS + i] = band[indexes[from + i]] * scale + shift;
    }
  }

  /** Loads adjacent pixels from `first` on. The numbers from `start` on are copied once for all panels of the window. */
  private decode(bands: readonly PixelArray[], type: number, start: number, first: number): void {
    const { kernel } = this;
    const size = bands[0].BYTES_PER_ELEMENT;
    if (this.held?.bands !== bands || this.held.start !== start) {
      for (const [b, band] of bands.entries()) {
        const { buffer, byteOffset, byteLength } = band.subarray(start, start + WINDOW_PIXELS);
        const to = new Uint8Array(kernel.memory.buffer, this.window + b * BAND_STRIDE * size, byteLength);
        to.set(new Uint8Array(buffer, byteOffset, byteLength));
      }
      this.held = { bands, start };
    }
    const stored = this.window + (first - start) * size;
    kernel.decode(stored, BAND_STRIDE * size, type, this.coding, this.pixels.at, this.bytes, this.bands);
  }

  /** Multiplies a matrix with the values of a plane, of as many rows as the matrix has columns. */
  multiply({ at, groups, starts, ends, out }: PanelMatrix, of: Plane): Float32Array | Float64Array {
    const { kernel, bytes } = this;
    const multiply = bytes === 4 ? kernel.multiply : kernel.multiply64;
    for (let group = 0; group < groups; group++) {
      const start = starts[group];
      multiply(
        of.at + start * PANEL_PIXELS * bytes,
        at + (group * of.rows + start) * CALL_ROWS * bytes,
        out.at + group * CALL_ROWS * PANEL_PIXELS * bytes,
        ends[group] - start,
      );
    }
    return this.values(out);
  }

  /** The sum of the squares of the first `rows` values of each pixel. */
  squares(of: Plane, into: Plane, rows = of.rows): Float32Array | Float64Array {
    const { kernel, bytes } = this;
    const squares = bytes === 4 ? kernel.squares : kernel.squares64;
    squares(of.at, into.at, rows);
    return this.values(into);
  }

  /** The angles of the pixels and the rows of a matrix, which are unit vectors; in f32. NaN for a spectrum of zeros. */
  angles(matrix: PanelMatrix, squares: Plane): Float32Array | Float64Array {
    this.squares(this.pixels, squares);
    const angles = this.multiply(matrix, this.pixels);
    const { at, columns, out } = matrix;
    this.kernel.angles(out.at, squares.at, this.pixels.at, at, out.rows, columns);
    return angles;
  }

  /** Allocates memory of the kernel and returns its address. */
  private take(bytes: number): number {
    const at = this.end;
    this.end += Math.ceil(bytes / 16) * 16;
    const missing = this.end - this.kernel.memory.buffer.byteLength;
    if (missing > 0) this.kernel.memory.grow(Math.ceil(missing / PAGE_BYTES));
    return at;
  }
}
