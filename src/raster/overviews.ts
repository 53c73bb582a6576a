/** Smaller copies of an image for quick looks at it. */
import { kernels } from './kernels-by-type.js';
import { emptyPixel, isFloat, newPixels, storedNodata } from './pixels.js';
import type { DataType, PixelArray } from './types.js';

/** `mean` over the valid pixels for measurements, `nearest` for codes and masks. */
export type OverviewResampling = 'mean' | 'nearest';

export interface ImageLevel {
  width: number;
  height: number;
  bands: PixelArray[];
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
    const { width, height } = level;
    level = {
      width: Math.ceil(width / 2),
      height: Math.ceil(height / 2),
      bands: level.bands.map((band) =>
        resampling === 'mean'
          ? halveByMean(band, width, height, dataType, nodata)
          : halveByNearest(band, width, height, dataType),
      ),
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
  kernels[dataType].halveByMean(source, width, height, hole, out, empty, !isFloat(dataType));
  return out;
}
