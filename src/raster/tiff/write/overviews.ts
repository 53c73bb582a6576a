/** Smaller copies of an image for quick looks at it. */

import { besideNodata, emptyPixel, isFloat, newPixels, storedNodata } from '../../pixels/data-types.js';
import { kernels } from '../../pixels/typed-kernels.js';
import type { DataType, PixelArray } from '../../types.js';

/** `mean` over the valid pixels for measurements, `nearest` for codes and masks. */
export type OverviewResampling = 'mean' | 'nearest';

export interface ImageLevel {
  width: number;
  height: number;
  bands: PixelArray[];
  /** 0 for pixels without data. */
  mask?: Uint8Array | undefined;
}

/** The image itself and its halvings, until both sides are at most `largest` pixels. */
export function pyramid(
  full: ImageLevel,
  dataType: DataType,
  nodata: number | undefined,
  resampling: OverviewResampling,
  largest: number,
): ImageLevel[] {
  const levels = [full];
  for (let level = full; level.width > largest || level.height > largest; ) {
    const { width, height, mask } = level;
    level = {
      width: Math.ceil(width / 2),
      height: Math.ceil(height / 2),
      bands: level.bands.map((band) => {
        if (resampling === 'nearest') return halveByNearest(band, width, height, dataType);
        return mask
          ? halveByMeanInside(band, mask, width, height, dataType)
          : halveByMean(band, width, height, dataType, nodata);
      }),
      mask: mask && halveMask(mask, width, height, resampling),
    };
    levels.push(level);
  }
  return levels;
}

function halveByNearest(source: PixelArray, width: number, height: number, dataType: DataType): PixelArray {
  const outWidth = Math.ceil(width / 2);
  const out = newPixels(dataType, outWidth * Math.ceil(height / 2));
  for (let row = 0, to = 0; row < height; row += 2) {
    for (let column = 0; column < width; column += 2) out[to++] = source[row * width + column];
  }
  return out;
}

function halveByMean(
  source: PixelArray,
  width: number,
  height: number,
  dataType: DataType,
  nodata: number | undefined,
): PixelArray {
  const out = newPixels(dataType, Math.ceil(width / 2) * Math.ceil(height / 2));
  const hole = storedNodata(dataType, nodata) ?? NaN;
  const empty = emptyPixel(dataType, nodata);
  kernels[dataType].halveByMean(
    source,
    width,
    height,
    hole,
    out,
    empty,
    !isFloat(dataType),
    besideNodata(dataType, hole),
  );
  return out;
}

function halveByMeanInside(
  source: PixelArray,
  mask: Uint8Array,
  width: number,
  height: number,
  dataType: DataType,
): PixelArray {
  const out = newPixels(dataType, Math.ceil(width / 2) * Math.ceil(height / 2));
  kernels[dataType].halveByMeanInside(source, mask, width, height, out, !isFloat(dataType));
  return out;
}

/** Where the halved image holds data: in the pixel that was picked, or in any that the mean is made of. */
function halveMask(
  mask: Uint8Array,
  width: number,
  height: number,
  resampling: OverviewResampling,
): Uint8Array {
  if (resampling === 'nearest') return halveByNearest(mask, width, height, 'uint8') as Uint8Array;
  const out = new Uint8Array(Math.ceil(width / 2) * Math.ceil(height / 2));
  for (let row = 0, to = 0; row < height; row += 2) {
    const upper = row * width;
    const lower = Math.min(row + 1, height - 1) * width;
    for (let column = 0; column < width; column += 2) {
      const right = Math.min(column + 1, width - 1);
      out[to++] = mask[upper + column] | mask[upper + right] | mask[lower + column] | mask[lower + right];
    }
  }
  return out;
}
