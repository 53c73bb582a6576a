/**
 * Exact sums over the pixels of many tiles, and their mean and covariance. The result depends neither on the order of addition nor on the
 * number of nodes.
 */
import { tooFewPixels } from '../errors.js';
import type { DeviationSums } from './band-product-sums.js';

/** Fractional bits in fixed point. A product of an offset and a sum has as many as a sum of products. */
const OFFSET_BITS = 40;
const SUM_BITS = 80;
const PRODUCT_BITS = OFFSET_BITS + SUM_BITS;

/** The number in fixed point; exact if it has no more fractional bits. */
const fixed = (value: number, bits: number) => BigInt(Math.round(value * 2 ** bits));

/** Conversion of sums of physical values to fixed point, in which addition is exact, and back. */
export const toFixedPoint = (value: number): bigint => fixed(value, SUM_BITS);
export const fromFixedPoint = (sum: bigint): number => Number(sum) / 2 ** SUM_BITS;

/** The sums of `ExactSums` in fixed point, for another thread. */
export interface FixedPointSums<T = bigint> {
  pixels: number;
  sums: T[];
  /** Sums of products of bands i <= j, row by row. */
  products: T[];
}

/** `ExactSums` for other nodes: integers as text, because JSON has no large integers. */
export type SentSums = FixedPointSums<string>;

export interface BandMoments {
  pixels: number;
  mean: Float64Array;
  /** Sums of products of differences from the mean, symmetric, row by row. */
  scatter: Float64Array;
}

export interface BandStatistics {
  pixels: number;
  mean: Float64Array;
  /** Sample covariance (divided by pixels - 1), symmetric, row by row. */
  covariance: Float64Array;
}

/**
 * Sums of values and of products over pixels, in fixed point. Adding integers is exact in every order, so totals of the same tiles have the
 * same bits on any distribution over nodes.
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

  /** Adds sums of n deviations. With x = o + d and y = p + e: sum(x y) = sum(d e) + o sum(e) + p sum(d) + n o p. */
  addDeviations({ pixels, offsets, sums, products }: DeviationSums): void {
    const count = BigInt(pixels);
    const o = Array.from(offsets, (value) => fixed(value, OFFSET_BITS));
    const d = Array.from(sums, (value) => fixed(value, SUM_BITS));
    this.pixels += pixels;
    for (let i = 0, at = 0; i < this.bands; i++) {
      this.sums[i] += d[i] + ((count * o[i]) << BigInt(SUM_BITS - OFFSET_BITS));
      for (let j = i; j < this.bands; j++, at++)
        this.products[at] +=
          fixed(products[at], PRODUCT_BITS) +
          o[i] * d[j] +
          o[j] * d[i] +
          ((count * o[i] * o[j]) << BigInt(PRODUCT_BITS - 2 * OFFSET_BITS));
    }
  }

  add({ pixels, sums, products }: FixedPointSums): void {
    this.pixels += pixels;
    for (let i = 0; i < sums.length; i++) this.sums[i] += sums[i];
    for (let i = 0; i < products.length; i++) this.products[i] += products[i];
  }

  addSent({ pixels, sums, products }: SentSums): void {
    this.add({ pixels, sums: sums.map(BigInt), products: products.map(BigInt) });
  }

  fixedPoint(): FixedPointSums {
    return { pixels: this.pixels, sums: this.sums, products: this.products };
  }

  sent(): SentSums {
    return { pixels: this.pixels, sums: this.sums.map(String), products: this.products.map(String) };
  }

  /** Pixels added so far. */
  get count(): number {
    return this.pixels;
  }

  /**
   * Moments of physical values, x = stored * scale + offset, of at least one pixel. They are rounded once at the end, so no digits cancel.
   */
  moments(scales: ArrayLike<number>, offsets: ArrayLike<number>): BandMoments {
    const { bands, pixels, sums, products } = this;
    const count = BigInt(pixels);
    const mean = Float64Array.from(
      sums,
      (sum, b) => (Number(sum) / 2 ** SUM_BITS / pixels) * scales[b] + offsets[b],
    );
    const divisor = 2 ** (2 * SUM_BITS) * pixels;
    const scatter = new Float64Array(bands * bands);
    for (let i = 0, at = 0; i < bands; i++)
      for (let j = i; j < bands; j++, at++) {
        const exact = ((count * products[at]) << BigInt(2 * SUM_BITS - PRODUCT_BITS)) - sums[i] * sums[j];
        const value = (Number(exact) / divisor) * scales[i] * scales[j];
        scatter[i * bands + j] = value;
        scatter[j * bands + i] = value;
      }
    return { pixels, mean, scatter };
  }
}

/**
 * Moments of the union of several sets of pixels (Chan, Golub and LeVeque 1979), of at least one set. The last bits depend on the order of
 * the sets.
 */
export function poolMoments(sets: readonly BandMoments[]): BandMoments {
  return sets.reduce((a, b) => {
    const pixels = a.pixels + b.pixels;
    const bands = a.mean.length;
    const apart = a.mean.map((mean, i) => b.mean[i] - mean);
    const between = (a.pixels * b.pixels) / pixels;
    const scatter = a.scatter.map(
      (sum, at) => sum + b.scatter[at] + between * apart[Math.floor(at / bands)] * apart[at % bands],
    );
    return { pixels, mean: a.mean.map((mean, i) => mean + (apart[i] * b.pixels) / pixels), scatter };
  });
}

/** Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
export function bandStatistics({ pixels, mean, scatter }: BandMoments): BandStatistics {
  if (pixels < 2) throw tooFewPixels(pixels);
  return { pixels, mean, covariance: scatter.map((sum) => sum / (pixels - 1)) };
}
