/** Exact sums over the pixels of many tiles, and mean and covariance. The result does not depend on the order of adding or the number of nodes. */
import { tooFewPixels } from './errors.js';
import type { DeviationSums } from './products.js';

/**
 * Bits after the point, in fixed point: of offsets, of sums of values, and of sums of products. A product of an offset and a sum has
 * as many as a sum of products.
 */
const OFFSET_BITS = 40;
const SUM_BITS = 80;
const PRODUCT_BITS = OFFSET_BITS + SUM_BITS;

/** The number in fixed point; exact for all that f64 holds with no more bits after the point. */
const fixed = (value: number, bits: number) => BigInt(Math.round(value * 2 ** bits));

/** `ExactSums` as JSON, for other nodes. */
export interface SentSums {
  pixels: number;
  /** In fixed point, as text: JSON has no such numbers. */
  sums: string[];
  products: string[];
}

export interface BandStatistics {
  pixels: number;
  mean: Float64Array;
  /** Sample covariance (divided by pixels - 1), symmetric, row by row. */
  covariance: Float64Array;
}

/**
 * Sums of values and of products over pixels, in fixed point. Adding whole numbers is exact and in no order, so totals of the same
 * tiles have the same bits wherever these are.
 */
export class ExactSums {
  private pixels = 0;
  private readonly sums: bigint[];
  /** Sums of products of bands i <= j, row by row. */
  private readonly products: bigint[];

  constructor(private readonly bands: number) {
    this.sums = new Array<bigint>(bands).fill(0n);
    this.products = new Array<bigint>((bands * (bands + 1)) / 2).fill(0n);
  }

  /** Adds sums of deviations: with x = o + d, the sum of x y is that of d e, plus o times that of e, plus p times that of d, plus n o p. */
  addDeviations({ pixels, offsets, sums, products }: DeviationSums): void {
    const count = BigInt(pixels);
    const o = Array.from(offsets, (value) => fixed(value, OFFSET_BITS));
    const d = Array.from(sums, (value) => fixed(value, SUM_BITS));
    this.pixels += pixels;
    for (let i = 0, at = 0; i < this.bands; i++) {
      this.sums[i]! += d[i]! + ((count * o[i]!) << BigInt(SUM_BITS - OFFSET_BITS));
      for (let j = i; j < this.bands; j++, at++)
        this.products[at]! +=
          fixed(products[at]!, PRODUCT_BITS) +
          o[i]! * d[j]! +
          o[j]! * d[i]! +
          ((count * o[i]! * o[j]!) << BigInt(PRODUCT_BITS - 2 * OFFSET_BITS));
    }
  }

  addSent({ pixels, sums, products }: SentSums): void {
    this.pixels += pixels;
    for (const [i, sum] of sums.entries()) this.sums[i]! += BigInt(sum);
    for (const [i, product] of products.entries()) this.products[i]! += BigInt(product);
  }

  sent(): SentSums {
    return { pixels: this.pixels, sums: this.sums.map(String), products: this.products.map(String) };
  }

  /**
   * Mean and covariance of physical values, x = stored * scale + offset. They are rounded once, at the end: nothing cancels. Throws
   * TW_ANALYSIS_TOO_FEW_PIXELS.
   */
  statistics(scales: ArrayLike<number>, offsets: ArrayLike<number>): BandStatistics {
    const { bands, pixels, sums, products } = this;
    if (pixels < 2) throw tooFewPixels(pixels);
    const count = BigInt(pixels);
    const mean = Float64Array.from(
      sums,
      (sum, b) => (Number(sum) / 2 ** SUM_BITS / pixels) * scales[b]! + offsets[b]!,
    );
    const divisor = 2 ** (2 * SUM_BITS) * pixels * (pixels - 1);
    const covariance = new Float64Array(bands * bands);
    for (let i = 0, at = 0; i < bands; i++)
      for (let j = i; j < bands; j++, at++) {
        const scatter =
          ((count * products[at]!) << BigInt(2 * SUM_BITS - PRODUCT_BITS)) - sums[i]! * sums[j]!;
        const value = (Number(scatter) / divisor) * scales[i]! * scales[j]!;
        covariance[i * bands + j] = value;
        covariance[j * bands + i] = value;
      }
    return { pixels, mean, covariance };
  }
}
