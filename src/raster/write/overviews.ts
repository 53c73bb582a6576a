/** Downsampled copies of an image for fast display. */
import {
  allocatePixels,
  fillValueFor,
  isFloat,
  nodataAsType,
  nodataReplacementFor,
} from '../pixels/data-types.js';
import { typedKernels } from '../pixels/masks.js';
import type { DataType, PixelArray } from '../raster.js';

/** `mean` over the valid pixels for measurements, `nearest` for codes and masks. */
export type OverviewResampling = 'mean' | 'nearest';

export interface OverviewLevel {
  width: number;
  height: number;
  bands: PixelArray[];
  /** One mask for all bands, or one for each: 0 for pixels without data. */
  masks?: Uint8Array[] | undefined;
}

/** Largest size without an overview: validators of COGs require one above. */
const MAX_SMALLEST_OVERVIEW_SIDE = 512;
/** Largest side of the smallest overview, which maps of low zoom levels read. */
export const SMALL_PICTURE_SIDE = 64;

const isWithin = (side: number, { width, height }: { width: number; height: number }) =>
  width <= side && height <= side;

/** The image, its halvings until both sides are at most 512 pixels, and the first halving with sides of at most 64 pixels. */
export function buildOverviews(
  full: OverviewLevel,
  dataType: DataType,
  nodata: number | undefined,
  resampling: OverviewResampling,
  { largest, picture } = { largest: MAX_SMALLEST_OVERVIEW_SIDE, picture: SMALL_PICTURE_SIDE },
): OverviewLevel[] {
  const levels = [full];
  const hole = nodataAsType(dataType, nodata) ?? NaN;
  const fillValue = fillValueFor(dataType, nodata);
  const replacement = nodataReplacementFor(dataType, hole);
  const round = !isFloat(dataType);
  const kernels = typedKernels[dataType];
  for (let level = full; !isWithin(picture, level); ) {
    const { width, height, masks } = level;
    const isNeeded = !isWithin(largest, level);
    const half = { width: Math.ceil(width / 2), height: Math.ceil(height / 2) };
    level = {
      ...half,
      bands: level.bands.map((band, b) => {
        const mask = masks?.[b] ?? masks?.[0];
        const out = allocatePixels(dataType, half.width * half.height);
        if (resampling === 'nearest') downsampleNearest(band, width, height, out);
        else if (mask) kernels.downsampleMeanMasked(band, mask, width, height, out, round);
        else kernels.downsampleMean(band, width, height, hole, out, fillValue, round, replacement);
        return out;
      }),
      masks: masks?.map((mask) => downsampleMask(mask, width, height, resampling)),
    };
    if (isNeeded || isWithin(picture, level)) levels.push(level);
  }
  return levels;
}

function downsampleNearest(source: PixelArray, width: number, height: number, out: PixelArray): void {
  for (let row = 0, to = 0; row < height; row += 2) {
    for (let column = 0; column < width; column += 2) out[to++] = source[row * width + column];
  }
}

/** The mask of the halved image: of the pixel that was picked, or the union of those in the mean. */
function downsampleMask(
  mask: Uint8Array,
  width: number,
  height: number,
  resampling: OverviewResampling,
): Uint8Array {
  const out = new Uint8Array(Math.ceil(width / 2) * Math.ceil(height / 2));
  if (resampling === 'nearest') {
    downsampleNearest(mask, width, height, out);
    return out;
  }
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
