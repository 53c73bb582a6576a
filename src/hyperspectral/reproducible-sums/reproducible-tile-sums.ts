/** Sums over the pixels of one tile. Runs in worker threads. */
import type { DataType, PixelArray } from '../../raster/index.js';

import { eachBlock, type SpectrumBlock, type SpectrumFile } from '../spectrum-reading/index.js';
import { BandProducts, type DeviationSums } from './band-product-sums.js';
import { ExactSums, type FixedPointSums } from './exact-band-sums.js';

/** Sums are over pixels, or over differences between neighbouring pixels of a row. */
export type SummedQuantity = 'pixels' | 'differences';

/** Sums the pixels of a tile. */
export interface SumsTask {
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
const kept = new Map<SummedQuantity, { key: string; products: BandProducts }>();

function productsOf(summed: SummedQuantity, bands: number, dataType: DataType): BandProducts {
  const key = `${bands} ${dataType}`;
  const known = kept.get(summed);
  if (known?.key === key) return known.products;
  const products = new BandProducts(bands, dataType);
  kept.set(summed, { key, products });
  return products;
}

/**
 * Differences between each pixel and its western neighbour in the same block, if both are clear and have data. Neighbours show nearly the
 * same ground, so they differ mostly by noise (Green et al. 1988).
 */
function differences({ bands, indexes, stride }: SpectrumBlock): {
  bands: PixelArray[];
  indexes: Int32Array;
} {
  const pairs = indexes.filter((index, i) => i > 0 && indexes[i - 1] === index - 1 && index % stride !== 0);
  // The difference of two numbers of 16 bits fits into 32.
  const areShort = bands[0].BYTES_PER_ELEMENT <= 2;
  return {
    indexes: Int32Array.from(pairs.keys()),
    bands: bands.map((band) => {
      const out = areShort ? new Int32Array(pairs.length) : new Float64Array(pairs.length);
      for (let i = 0; i < pairs.length; i++) out[i] = band[pairs[i]] - band[pairs[i] - 1];
      return out;
    }),
  };
}
