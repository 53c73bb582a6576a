/** Downsampled copies of an image for fast display. */

import {
  allocatePixels,
  fillValueFor,
  isFloat,
  nodataAsType,
  nodataReplacementFor,
  typedKernels,
} from '../../pixels/index.js';
import type { DataType, PixelArray } from '../../raster-types.js';

/** `mean` over the valid pixels for measurements, `nearest` for codes and masks. */
export type OverviewResampling = 'mean' | 'nearest';

export interface OverviewLevel {
  width: number;
  height: number;
  bands: PixelArray[];
  /** 0 for pixels without data. */
  mask?: Uint8Array | undefined;
}

/** The image and its halvings, until both sides are at most `largest` pixels. */
export function buildOverviews(
  full: OverviewLevel,
  dataType: DataType,
  nodata: number | undefined,
  resampling: OverviewResampling,
  largest: number,
): OverviewLevel[] {
  const levels = [full];
  for (let level = full; level.width > largest || level.height > largest; ) {
    const { width, height, mask } = level;
    level = {
      width: Math.ceil(width / 2),
      height: Math.ceil(height / 2),
      bands: level.bands.map((band) => {
        if (resampling === 'nearest') return downsampleNearest(band, width, height, dataType);
        return mask
          ? downsampleMeanMasked(band, mask, width, height, dataType)
          : downsampleMean(band, width, height, dataType, nodata);
      }),
      mask: mask && downsampleMask(mask, width, height, resampling),
    };
    levels.push(level);
  }
  return levels;
}

function downsampleNearest(
  source: PixelArray,
  width: number,
  height: number,
  dataType: DataType,
): PixelArray {
  const outWidth = Math.ceil(width / 2);
  const out = allocatePixels(dataType, outWidth * Math.ceil(height / 2));
  for (let row = 0, to = 0; row < height; row += 2) {
    for (let column = 0; column < width; column += 2) out[to++] = source[row * width + column];
  }
  return out;
}

function downsampleMean(
  source: PixelArray,
  width: number,
  height: number,
  dataType: DataType,
  nodata: number | undefined,
): PixelArray {
  const out = allocatePixels(dataType, Math.ceil(width / 2) * Math.ceil(height / 2));
  const hole = nodataAsType(dataType, nodata) ?? NaN;
  const fillValue = fillValueFor(dataType, nodata);
  typedKernels[dataType].downsampleMean(
    source,
    width,
    height,
    hole,
    out,
    fillValue,
    !isFloat(dataType),
    nodataReplacementFor(dataType, hole),
  );
  return out;
}

function downsampleMeanMasked(
  source: PixelArray,
  mask: Uint8Array,
  width: number,
  height: number,
  dataType: DataType,
): PixelArray {
  const out = allocatePixels(dataType, Math.ceil(width / 2) * Math.ceil(height / 2));
  typedKernels[dataType].downsampleMeanMasked(source, mask, width, height, out, !isFloat(dataType));
  return out;
}

/** The mask of the halved image: of the pixel that was picked, or the union of those in the mean. */
function downsampleMask(
  mask: Uint8Array,
  width: number,
  height: number,
  resampling: OverviewResampling,
): Uint8Array {
  if (resampling === 'nearest') return downsampleNearest(mask, width, height, 'uint8') as Uint8Array;
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
