/** Sums of values over the pixels of classes. Sums over tiles are exact, so the means do not depend on the nodes of the tiles. */

import type { PixelArray } from '../../raster/index.js';
import { COUNT, listOf, objectOf } from '../../utils/json-schema.js';

import { fromFixedPoint, toFixedPoint } from './exact-band-sums.js';
import type { ValueEncoding } from './sums-by-encoding.js';

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
