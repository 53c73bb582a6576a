/** The mask or alpha band of a file, which marks its valid pixels. */
import type { RasterHeader } from '../raster-types.js';

/** A band whose zeros mark pixels without data. */
export interface ValidityBand {
  header: RasterHeader;
  /** From 0. */
  index: number;
}

/** The nodata value of a file; undefined if it has none, or a mask, which takes precedence as in GDAL. */
export function effectiveNodata({ nodata, mask }: RasterHeader): number | undefined {
  return mask ? undefined : nodata;
}

/** A header whose alpha band is an ordinary band, because the product or the user declares it as data. */
export function treatAlphaAsData({ alpha: _, ...header }: RasterHeader): RasterHeader {
  return header;
}

/**
 * The band that marks the valid pixels of a band; undefined if the file has none. As in GDAL, a mask takes precedence over
 * alpha.
 */
export function findValidityBand(header: RasterHeader, index: number): ValidityBand | undefined {
  const { mask, alpha } = header;
  if (mask) return { header: mask, index: mask.bands === 1 ? 0 : index };
  return alpha === undefined || alpha === index ? undefined : { header, index: alpha };
}
