/** Linear transforms of spectra: components, matched filters and projections. The loops are in linear-transform.wat. */
import { type PixelArray, simdKernel } from '../raster/index.js';
import type { Coding } from './coded-sums.js';
import { noSimd } from './errors.js';

interface Kernel {
  memory: { buffer: ArrayBuffer; grow(pages: number): void };
  transform(pixels: number, weights: number, out: number, bands: number): void;
}

/** y = weights * (x - centre), where x is a spectrum of physical values. Plain data. */
export interface LinearTransform {
  rows: number;
  /** rows x bands. */
  weights: Float64Array;
  centre: Float64Array;
}

const PAGE = 65_536;
/** Pixels and rows of the matrix in one call of the kernel. */
const PIXELS = 64;
const ROWS = 4;

/**
 * A transform of stored numbers. Factors are computed in f64 and rounded to f32 once; products are summed in f32.
 *
 * Invariant: the memory of the kernel has room for 64 pixels, the weights as the kernel reads them, and 64 results of each row.
 */
export class StoredTransform {
  private readonly kernel: Kernel;
  private readonly bands: number;
  private readonly panels: number;
  /** Stored numbers at which the result is 0. */
  private readonly centre: Float64Array;
  private readonly weightsAt: number;
  private readonly outAt: number;

  constructor({ rows, weights, centre }: LinearTransform, { scales, offsets }: Coding) {
    const kernel = simdKernel<Kernel>(new URL('./linear-transform.wasm', import.meta.url));
    if (!kernel) throw noSimd();
    const bands = centre.length;
    const panels = Math.ceil(rows / ROWS);
    this.kernel = kernel;
    this.bands = bands;
    this.panels = panels;
    this.centre = centre.map((value, band) => (value - offsets[band]!) / scales[band]!);
    this.weightsAt = PIXELS * bands * 4;
    this.outAt = this.weightsAt + panels * ROWS * bands * 4;
    const bytes = this.outAt + panels * ROWS * PIXELS * 4;
    kernel.memory.grow(Math.ceil(bytes / PAGE) - 1);
    const packed = new Float32Array(kernel.memory.buffer, this.weightsAt, panels * ROWS * bands);
    for (let row = 0; row < rows; row++)
      for (let band = 0; band < bands; band++)
        packed[(Math.floor(row / ROWS) * bands + band) * ROWS + (row % ROWS)] =
          weights[row * bands + band]! * scales[band]!;
  }

  /**
   * Transforms the pixels at `indexes` of the bands. `visit` gets the results of up to 64 of them: row r of pixel `indexes[from + i]` is
   * `results[r * 64 + i]`, good until the next call.
   */
  apply(
    bands: readonly PixelArray[],
    indexes: Int32Array,
    visit: (results: Float32Array, from: number, count: number) => void,
  ): void {
    const { buffer } = this.kernel.memory;
    const pixels = new Float32Array(buffer, 0, PIXELS * this.bands);
    const results = new Float32Array(buffer, this.outAt, this.panels * ROWS * PIXELS);
    for (let from = 0; from < indexes.length; from += PIXELS) {
      const count = Math.min(PIXELS, indexes.length - from);
      for (let b = 0; b < this.bands; b++) {
        const band = bands[b]!;
        const zero = this.centre[b]!;
        const at = b * PIXELS;
        for (let i = 0; i < count; i++) pixels[at + i] = band[indexes[from + i]!]! - zero;
      }
      for (let panel = 0; panel < this.panels; panel++)
        this.kernel.transform(
          0,
          this.weightsAt + panel * ROWS * this.bands * 4,
          this.outAt + panel * ROWS * PIXELS * 4,
          this.bands,
        );
      visit(results, from, count);
    }
  }
}
