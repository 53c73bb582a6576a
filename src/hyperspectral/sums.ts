/**
 * Exact sums over the pixels of many tiles, also by class and by encoding of the stored numbers, and their means and covariances. The
 * result depends neither on the order of addition nor on the number of nodes.
 */

import type { DataType, PixelArray } from '../raster/index.js';
import { COUNT, listOf, NUMBER, objectOf } from '../utils/json-schema.js';
import { BandProducts, type DeviationSums } from './band-products.js';
import { eachBlock, type SpectrumBlock, type SpectrumFile } from './blocks.js';
import { tooFewPixels } from './errors.js';

/** Fractional bits in fixed point. A product of an offset and a sum has as many as a sum of products. */
const OFFSET_BITS = 40;
const SUM_BITS = 80;
const PRODUCT_BITS = OFFSET_BITS + SUM_BITS;

/** The number in fixed point; exact if it has no more fractional bits. */
const fixed = (value: number, bits: number) => BigInt(Math.round(value * 2 ** bits));

/** Conversion of sums of physical values to fixed point, in which addition is exact, and back. */
const toFixedPoint = (value: number): bigint => fixed(value, SUM_BITS);
const fromFixedPoint = (sum: bigint): number => Number(sum) / 2 ** SUM_BITS;

/** The sums of `ExactSums` in fixed point, for another thread. */
export interface FixedPointSums<T = bigint> {
  pixels: number;
  sums: T[];
  /** Sums of products of bands i <= j, row by row. */
  products: T[];
}

/** `ExactSums` for other nodes: integers as text, because JSON has no large integers. */
type SentSums = FixedPointSums<string>;

interface BandMoments {
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
function poolMoments(sets: readonly BandMoments[]): BandMoments {
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

/** Sums are over pixels, or over differences between neighbouring pixels of a row or column. */
export type SummedQuantity = 'pixels' | 'differences';

/** Sums the pixels of a tile. */
interface SumsTask {
  file: SpectrumFile;
  of: readonly SummedQuantity[];
}

/** Returns one result for each of `of`. Throws TW_IMAGERY_TILE_FILE. */
export function tileSums({ file, of }: SumsTask): FixedPointSums[] {
  const count = file.bands.length;
  const sums = of.map((summed) => {
    const total = new ExactSums(count);
    const flush = (part: DeviationSums) => total.addDeviations(part);
    return { summed, total, flush, products: productsOf(summed, count, file.dataType) };
  });
  try {
    eachBlock(file, (block) => {
      for (const { summed, flush, products } of sums) {
        const { bands, indexes } = summed === 'pixels' ? block : differences(block);
        products.add(bands, indexes, flush);
      }
    });
  } finally {
    // The sums are taken even if a block could not be read, so that the next tile begins at zero.
    for (const { flush, products } of sums) flush(products.take());
  }
  return sums.map(({ total }) => total.fixedPoint());
}

/** Cache of kernels and their memory: tiles of one collection have the same bands. */
const keptProducts = new Map<SummedQuantity, { key: string; products: BandProducts }>();

function productsOf(summed: SummedQuantity, bands: number, dataType: DataType): BandProducts {
  const key = `${bands} ${dataType}`;
  const known = keptProducts.get(summed);
  if (known?.key === key) return known.products;
  const products = new BandProducts(bands, dataType);
  keptProducts.set(summed, { key, products });
  return products;
}

/**
 * Differences between each pixel and its western neighbour, then between each pixel and its northern one, in the same block, if both are
 * clear and have data. Neighbours show nearly the same ground, so they differ mostly by noise (Green et al. 1988). One direction alone
 * would count the stripes between the detectors of a scanner fully or not at all.
 */
function differences({ bands, indexes, stride }: SpectrumBlock): {
  bands: PixelArray[];
  indexes: Int32Array;
} {
  const isUsed = new Uint8Array(bands[0].length);
  for (const index of indexes) isUsed[index] = 1;
  const west = indexes.filter((index) => index % stride !== 0 && isUsed[index - 1] === 1);
  const north = indexes.filter((index) => isUsed[index - stride] === 1);
  const count = west.length + north.length;
  // The difference of two numbers of 16 bits fits into 32.
  const areShort = bands[0].BYTES_PER_ELEMENT <= 2;
  return {
    indexes: Int32Array.from({ length: count }, (_, i) => i),
    bands: bands.map((band) => {
      const out = areShort ? new Int32Array(count) : new Float64Array(count);
      let to = 0;
      for (const index of west) out[to++] = band[index] - band[index - 1];
      for (const index of north) out[to++] = band[index] - band[index - stride];
      return out;
    }),
  };
}

/** Encoding of stored numbers: physical value = stored * scale + offset, for each band. */
export interface ValueEncoding {
  scales: number[];
  offsets: number[];
}

/** As JSON, for other nodes. */
export interface SentSumsByEncoding extends ValueEncoding {
  sums: SentSums;
}

const INTEGER_TEXT = { type: 'string', pattern: '^-?[0-9]{1,400}$' } as const;

/** JSON Schema of `SentSumsByEncoding`. */
export const SUMS_BY_ENCODING_SCHEMA = objectOf({
  scales: listOf(NUMBER),
  offsets: listOf(NUMBER),
  sums: objectOf({ pixels: COUNT, sums: listOf(INTEGER_TEXT), products: listOf(INTEGER_TEXT) }),
});

/**
 * Exact sums over tiles whose stored numbers have different encodings: a product may have another scale in each scene. Invariant: `sums`
 * has one entry for each encoding, by its JSON.
 */
export class SumsByEncoding {
  private readonly sums = new Map<string, ExactSums>();

  constructor(private readonly bands: number) {}

  add({ scales, offsets }: ValueEncoding, sums: FixedPointSums): void {
    this.of({ scales, offsets }).add(sums);
  }

  addSent(sent: readonly SentSumsByEncoding[]): void {
    for (const { scales, offsets, sums } of sent) this.of({ scales, offsets }).addSent(sums);
  }

  sent(): SentSumsByEncoding[] {
    return [...this.sums].map(([key, sums]) => ({
      ...(JSON.parse(key) as ValueEncoding),
      sums: sums.sent(),
    }));
  }

  /** Pixels added so far. */
  get count(): number {
    return [...this.sums.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** Mean and covariance of physical values, with the same bits on any distribution of the tiles. Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
  statistics(): BandStatistics {
    const sets = [...this.sums].filter(([, { count }]) => count > 0).sort(([a], [b]) => (a < b ? -1 : 1));
    if (sets.length === 0) throw tooFewPixels(0);
    return bandStatistics(
      poolMoments(
        sets.map(([key, sums]) => {
          const { scales, offsets } = JSON.parse(key) as ValueEncoding;
          return sums.moments(scales, offsets);
        }),
      ),
    );
  }

  private of(encoding: ValueEncoding): ExactSums {
    const key = JSON.stringify(encoding);
    const known = this.sums.get(key) ?? new ExactSums(this.bands);
    this.sums.set(key, known);
    return known;
  }
}

/** The mean spectrum of a class. */
export interface ClassMean {
  code: number;
  pixels: number;
  mean: Float64Array;
}

/** Number of pixels, and sums of physical values in fixed point, for each code. */
export type FixedPointClassSums = Record<number, { pixels: number; sums: bigint[] }>;

/** JSON for other nodes, with integers as text. */
export type SentClassSums = Record<string, { pixels: number; sums: string[] }>;

/** JSON Schema of `SentClassSums`. */
export const CLASS_SUMS = {
  type: 'object',
  additionalProperties: objectOf({
    pixels: COUNT,
    sums: listOf({ type: 'string', pattern: '^-?[0-9]{1,400}$' }),
  }),
};

/** Sums over the pixels of one tile, in float64. They depend on the order of the pixels, which is always the same. */
export class TileClassSums {
  private readonly classes = new Map<number, { pixels: number; sums: Float64Array }>();

  constructor(private readonly coding: ValueEncoding) {}

  /** Adds pixels of one class: band b of pixel i is `bands[b][indexes[i]]`, a stored number. */
  add(code: number, bands: readonly PixelArray[], indexes: Int32Array): void {
    const { scales, offsets } = this.coding;
    const known = this.classes.get(code) ?? { pixels: 0, sums: new Float64Array(bands.length) };
    known.pixels += indexes.length;
    for (const [b, band] of bands.entries()) {
      let sum = 0;
      for (let i = 0; i < indexes.length; i++) sum += band[indexes[i]];
      known.sums[b] += sum * scales[b] + indexes.length * offsets[b];
    }
    this.classes.set(code, known);
  }

  fixedPoint(): FixedPointClassSums {
    return Object.fromEntries(
      [...this.classes].map(([code, { pixels, sums }]) => [
        code,
        { pixels, sums: Array.from(sums, toFixedPoint) },
      ]),
    );
  }
}

/** Sums over the pixels of many tiles. Adding integers is exact in every order. */
export class ClassSums {
  private readonly classes = new Map<number, { pixels: number; sums: bigint[] }>();

  add(sums: FixedPointClassSums): void {
    for (const [code, one] of Object.entries(sums)) this.addClass(Number(code), one.pixels, one.sums);
  }

  addSent(sums: SentClassSums): void {
    for (const [code, one] of Object.entries(sums))
      this.addClass(Number(code), one.pixels, one.sums.map(BigInt));
  }

  sent(): SentClassSums {
    return Object.fromEntries(
      [...this.classes].map(([code, { pixels, sums }]) => [code, { pixels, sums: sums.map(String) }]),
    );
  }

  /** The classes that have pixels, by ascending code. */
  means(): ClassMean[] {
    const classes = [...this.classes].sort(([a], [b]) => a - b);
    return classes.map(([code, { pixels, sums }]) => ({
      code,
      pixels,
      mean: Float64Array.from(sums, (sum) => fromFixedPoint(sum) / pixels),
    }));
  }

  private addClass(code: number, pixels: number, sums: readonly bigint[]): void {
    const known = this.classes.get(code);
    if (!known) this.classes.set(code, { pixels, sums: [...sums] });
    else {
      known.pixels += pixels;
      for (const [b, sum] of sums.entries()) known.sums[b] += sum;
    }
  }
}
