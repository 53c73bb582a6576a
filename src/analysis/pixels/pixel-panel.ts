/** Spectra of 64 pixels in the memory of the kernel of pixel-panel.wat, and products of matrices with them. */
import { type PixelArray, simdKernel } from '../../raster/index.js';
import { noSimd } from '../errors.js';
import type { Coding } from '../sums/coded-sums.js';

interface Kernel {
  memory: { buffer: ArrayBuffer; grow(pages: number): void };
  multiply(pixels: number, weights: number, out: number, bands: number): void;
  multiply64(pixels: number, weights: number, out: number, bands: number): void;
  squares(pixels: number, out: number, bands: number): void;
}

/** Pixels of a panel. */
export const PANEL = 64;
/** Rows of a matrix in one call of the kernel. */
const ROWS = 4;
const PAGE = 65_536;

/** Values of 64 pixels, `rows` for each: value r of pixel i is `values[r * 64 + i]`. */
interface Plane {
  readonly at: number;
  readonly rows: number;
}

/** A matrix in the memory of the kernel. */
export interface PanelMatrix {
  readonly at: number;
  readonly columns: number;
  /** Rows in whole groups of 4. */
  readonly groups: number;
  /** The columns [start, end) of each group that are not all 0. */
  readonly starts: number[];
  readonly ends: number[];
  readonly out: Plane;
}

/**
 * Invariant: memory up to `end` belongs to the panel, its matrices and their products; it only grows before the first pixels are
 * loaded, so views of it stay good.
 */
export class PixelPanel {
  readonly pixels: Plane;
  private readonly kernel: Kernel;
  private end = 0;

  /** `bytes`: of a number. Squares are those of f32. */
  constructor(
    private readonly bands: number,
    private readonly bytes: 4 | 8 = 4,
  ) {
    const kernel = simdKernel<Kernel>(new URL('./pixel-panel.wasm', import.meta.url));
    if (!kernel) throw noSimd();
    this.kernel = kernel;
    this.pixels = this.plane(bands);
  }

  /** Copies a matrix of `rows` x `columns`, row by row. */
  matrix(values: Float64Array, columns: number): PanelMatrix {
    const matrix = this.emptyMatrix(values.length / columns, columns);
    this.fill(matrix, values);
    return matrix;
  }

  emptyMatrix(rows: number, columns: number): PanelMatrix {
    const groups = Math.ceil(rows / ROWS);
    const at = this.take(groups * ROWS * columns);
    const starts = new Array<number>(groups).fill(0);
    const ends = new Array<number>(groups).fill(1);
    return { at, columns, groups, starts, ends, out: this.plane(groups * ROWS) };
  }

  /** Replaces the numbers of a matrix; `values` may have fewer rows. */
  fill({ at, columns, groups, starts, ends }: PanelMatrix, values: ArrayLike<number>): void {
    const packed = this.view(at, groups * ROWS * columns);
    starts.fill(columns - 1);
    ends.fill(1);
    for (let i = 0, row = 0; i < values.length; row++) {
      const group = Math.floor(row / ROWS);
      for (let column = 0; column < columns; column++, i++) {
        const value = values[i]!;
        packed[(group * columns + column) * ROWS + (row % ROWS)] = value;
        if (value === 0) continue;
        starts[group] = Math.min(starts[group]!, column);
        ends[group] = Math.max(ends[group]!, column + 1);
      }
    }
    // A group of zeros alone takes one column, too.
    for (const [group, end] of ends.entries()) starts[group] = Math.min(starts[group]!, end - 1);
  }

  plane(rows: number): Plane {
    return { at: this.take(rows * PANEL), rows };
  }

  values({ at, rows }: Plane): Float32Array | Float64Array {
    return this.view(at, rows * PANEL);
  }

  private view(at: number, length: number): Float32Array | Float64Array {
    const { buffer } = this.kernel.memory;
    return this.bytes === 4 ? new Float32Array(buffer, at, length) : new Float64Array(buffer, at, length);
  }

  /** Takes up to 64 pixels, those at `indexes[from]` and on: physical values less the `centre`. Returns their number. */
  load(
    bands: readonly PixelArray[],
    indexes: Int32Array,
    from: number,
    { scales, offsets }: Coding,
    centre: ArrayLike<number>,
  ): number {
    const values = this.values(this.pixels);
    const count = Math.min(PANEL, indexes.length - from);
    const first = indexes[from]!;
    const isRun = indexes[from + count - 1] === first + count - 1;
    for (let b = 0; b < this.bands; b++) {
      const band = bands[b]!;
      const scale = scales[b]!;
      // One rounding: in f64, then to f32.
      const shift = offsets[b]! - centre[b]!;
      const at = b * PANEL;
      if (isRun) for (let i = 0; i < count; i++) values[at + i] = band[first + i]! * scale + shift;
      else for (let i = 0; i < count; i++) values[at + i] = band[indexes[from + i]!]! * scale + shift;
    }
    return count;
  }

  /** Multiplies a matrix with the values of a plane, of as many rows as the matrix has columns. */
  multiply({ at, groups, starts, ends, out }: PanelMatrix, of: Plane): Float32Array | Float64Array {
    const { kernel, bytes } = this;
    const multiply = bytes === 4 ? kernel.multiply : kernel.multiply64;
    for (let group = 0; group < groups; group++) {
      const start = starts[group]!;
      multiply(
        of.at + start * PANEL * bytes,
        at + (group * of.rows + start) * ROWS * bytes,
        out.at + group * ROWS * PANEL * bytes,
        ends[group]! - start,
      );
    }
    return this.values(out);
  }

  /** The sum of the squares of the first `rows` values of each pixel. */
  squares(of: Plane, into: Plane, rows = of.rows): Float32Array | Float64Array {
    this.kernel.squares(of.at, into.at, rows);
    return this.values(into);
  }

  /** Memory for so many numbers. */
  private take(count: number): number {
    const at = this.end;
    this.end += Math.ceil((count * this.bytes) / 16) * 16;
    const missing = this.end - this.kernel.memory.buffer.byteLength;
    if (missing > 0) this.kernel.memory.grow(Math.ceil(missing / PAGE));
    return at;
  }
}
