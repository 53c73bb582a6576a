/** Sums of products of bands over pixels, which take most of the time of an analysis. The loops are in band-products.wat. */
import type { DataType, PixelArray } from '../raster/index.js';
import { loadWasmKernel } from '../utils/wasm-loader.js';
import { noSimd } from './errors.js';

interface Kernel {
  memory: { buffer: ArrayBuffer; grow(pages: number): void };
  products16(p: number, q: number, n: number, c: number, ldc: number): void;
  products64(p: number, q: number, n: number, c: number, ldc: number): void;
}

const PAGE_BYTES = 65_536;
/** Bands of a panel. */
const PANEL_BANDS = 12;
/** Pixels that are summed in registers; their panels fit into the cache. */
const BATCH_PIXELS = 64;
/** Integers below this are exact in f64. */
const MAX_EXACT_INTEGER = 2 ** 53;
const INT32 = 2 ** 31;

/** Types whose products are exact in f64. */
const INTEGER_TYPES: ReadonlySet<DataType> = new Set(['uint8', 'int8', 'uint16', 'int16']);

/** Sums over pixels of deviations d from an offset per band. */
export interface DeviationSums {
  pixels: number;
  /** One offset per band: an integer for pixels of 8 and 16 bits, else a multiple of OFFSET_STEP. */
  offsets: Float64Array;
  /** Sum of d. */
  sums: Float64Array;
  /** Sum of d[i] * d[j] for i <= j, row by row. */
  products: Float64Array;
}

/** Multiples are exact in the fixed point of `ExactSums`. */
const OFFSET_STEP = 2 ** -40;

/**
 * Sums pixels. Sums of 8-bit and 16-bit integers are exact: products of 16-bit deviations are summed in 32 bits as long as these cannot
 * overflow, then in f64. Sums of other types are computed in f64.
 *
 * Invariants: the matrix in the kernel's memory and `sums` contain the sums over all pixels added since `take`; no sum of integers in the
 * matrix exceeds `bound`.
 */
export class BandProducts {
  private readonly kernel: Kernel;
  private readonly panels: number;
  private readonly isWhole: boolean;
  private readonly offsets: Float64Array;
  private readonly sums: Float64Array;
  private pixels = 0;
  private bound = 0;
  /** Offsets of the panels and the matrix in the memory of the kernel, bytes. */
  private readonly panelsAt = 0;
  private readonly matrixAt: number;

  constructor(
    private readonly bands: number,
    dataType: DataType,
  ) {
    this.panels = Math.ceil(bands / PANEL_BANDS);
    this.isWhole = INTEGER_TYPES.has(dataType);
    this.offsets = new Float64Array(bands);
    this.sums = new Float64Array(bands);
    const kernel = loadWasmKernel<Kernel>(new URL('./band-products.wasm', import.meta.url));
    if (!kernel) throw noSimd();
    this.kernel = kernel;
    this.matrixAt = this.panels * PANEL_BANDS * BATCH_PIXELS * 8;
    const side = this.panels * PANEL_BANDS;
    const bytes = this.matrixAt + side * side * 8;
    this.kernel.memory.grow(Math.ceil(bytes / PAGE_BYTES) - 1);
  }

  /**
   * Adds pixels: band b of pixel i is `bands[b][indexes[i]]`. Calls `flush` with the sums so far before integers would be inexact in f64.
   */
  add(bands: readonly PixelArray[], indexes: Int32Array, flush: (sums: DeviationSums) => void): void {
    for (let from = 0; from < indexes.length; from += BATCH_PIXELS)
      this.addBatch(bands, indexes.subarray(from, from + BATCH_PIXELS), flush);
  }

  /** The sums since the last call. */
  take(): DeviationSums {
    const { bands, panels } = this;
    const side = panels * PANEL_BANDS;
    const matrix = this.matrix();
    const products = new Float64Array((bands * (bands + 1)) / 2);
    for (let i = 0, to = 0; i < bands; i++)
      for (let j = i; j < bands; j++) products[to++] = matrix[i * side + j];
    const taken = {
      pixels: this.pixels,
      offsets: this.offsets.slice(),
      sums: this.sums.slice(),
      products,
    };
    matrix.fill(0);
    this.sums.fill(0);
    this.pixels = 0;
    this.bound = 0;
    return taken;
  }

  private addBatch(
    bands: readonly PixelArray[],
    indexes: Int32Array,
    flush: (sums: DeviationSums) => void,
  ): void {
    if (this.pixels === 0) this.setOffsets(bands, indexes[0]);
    const most = this.largestDeviation(bands, indexes);
    const added = indexes.length * most * most;
    if (this.isWhole && this.bound + added > MAX_EXACT_INTEGER && this.pixels > 0) {
      flush(this.take());
      this.setOffsets(bands, indexes[0]);
    }
    this.bound += added;
    this.pixels += indexes.length;
    if (this.isWhole && most <= 32_767) this.multiply16(bands, indexes, most);
    else this.multiply64(bands, indexes);
  }

  /** Uses the first pixel as offset: other pixels are near it, so deviations are small. */
  private setOffsets(bands: readonly PixelArray[], index: number): void {
    for (let b = 0; b < this.bands; b++) {
      const value = bands[b][index];
      this.offsets[b] = this.isWhole ? value : Math.round(value / OFFSET_STEP) * OFFSET_STEP;
    }
  }

  private largestDeviation(bands: readonly PixelArray[], indexes: Int32Array): number {
    let most = 0;
    for (let b = 0; b < this.bands; b++) {
      const band = bands[b];
      const offset = this.offsets[b];
      for (let i = 0; i < indexes.length; i++) {
        const deviation = Math.abs(band[indexes[i]] - offset);
        if (deviation > most) most = deviation;
      }
    }
    return most;
  }

  private multiply16(bands: readonly PixelArray[], indexes: Int32Array, most: number): void {
    const { buffer } = this.kernel.memory;
    const panels = new Int16Array(buffer, this.panelsAt, this.panels * PANEL_BANDS * BATCH_PIXELS);
    panels.fill(0);
    for (let b = 0; b < this.bands; b++) {
      const band = bands[b];
      const offset = this.offsets[b];
      // The two pixels of a pair are adjacent for each band.
      const at = Math.floor(b / PANEL_BANDS) * PANEL_BANDS * BATCH_PIXELS + 2 * (b % PANEL_BANDS);
      let sum = 0;
      for (let i = 0; i < indexes.length; i++) {
        const deviation = band[indexes[i]] - offset;
        panels[at + (i >> 1) * 2 * PANEL_BANDS + (i & 1)] = deviation;
        sum += deviation;
      }
      this.sums[b] += sum;
    }
    const pairs = Math.ceil(indexes.length / 2);
    // The sums of two products per pair must not overflow 32 bits.
    const safe = most === 0 ? pairs : Math.max(1, Math.floor((INT32 - 1) / (2 * most * most)));
    for (let from = 0; from < pairs; from += safe)
      this.multiply(this.kernel.products16, 2, from, Math.min(safe, pairs - from), PANEL_BANDS);
  }

  private multiply64(bands: readonly PixelArray[], indexes: Int32Array): void {
    const panels = new Float64Array(
      this.kernel.memory.buffer,
      this.panelsAt,
      this.panels * PANEL_BANDS * BATCH_PIXELS,
    );
    panels.fill(0);
    for (let b = 0; b < this.bands; b++) {
      const band = bands[b];
      const offset = this.offsets[b];
      const at = Math.floor(b / PANEL_BANDS) * PANEL_BANDS * BATCH_PIXELS + (b % PANEL_BANDS);
      let sum = 0;
      for (let i = 0; i < indexes.length; i++) {
        const deviation = band[indexes[i]] - offset;
        panels[at + i * PANEL_BANDS] = deviation;
        sum += deviation;
      }
      this.sums[b] += sum;
    }
    this.multiply(this.kernel.products64, 8, 0, indexes.length, PANEL_BANDS / 2);
  }

  /**
   * Multiplies panels with each other, on and above the diagonal: rows [from, from + count), each a pair of pixels of 2 bytes or a pixel of
   * 8 bytes. The kernel's tiles are `width` bands wide.
   */
  private multiply(
    kernel: Kernel['products16'],
    size: 2 | 8,
    from: number,
    count: number,
    width: number,
  ): void {
    const panelBytes = PANEL_BANDS * BATCH_PIXELS * size;
    // A pair of pixels of 2 bytes is a row of the panel.
    const rowBytes = size === 2 ? PANEL_BANDS * 4 : PANEL_BANDS * 8;
    const bandBytes = rowBytes / PANEL_BANDS;
    const ldc = this.panels * PANEL_BANDS * 8;
    const first = this.panelsAt + from * rowBytes;
    for (let i = 0; i < this.panels; i++)
      for (let four = 0; four < PANEL_BANDS; four += 4)
        for (let j = i; j < this.panels; j++)
          for (let right = 0; right < PANEL_BANDS; right += width)
            kernel(
              first + i * panelBytes + four * bandBytes,
              first + j * panelBytes + right * bandBytes,
              count,
              this.matrixAt + (i * PANEL_BANDS + four) * ldc + (j * PANEL_BANDS + right) * 8,
              ldc,
            );
  }

  private matrix(): Float64Array {
    const side = this.panels * PANEL_BANDS;
    return new Float64Array(this.kernel.memory.buffer, this.matrixAt, side * side);
  }
}
