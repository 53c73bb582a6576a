/** The mask or alpha band of a file, which marks its valid pixels. */
import type { RasterHeader } from '../types.js';

/** A band of a raster; its pixels that are 0 hold no data. */
export interface ValidityBand {
  header: RasterHeader;
  /** From 0. */
  index: number;
}

/** The nodata value that marks pixels; undefined if the file has none, or a mask, which wins as in GDAL. */
export function effectiveNodata({ nodata, mask }: RasterHeader): number | undefined {
  return mask ? undefined : nodata;
}

/** A header whose alpha band is a band like the others: its product or its user says that it is data. */
export function treatAlphaAsData({ alpha: _, ...header }: RasterHeader): RasterHeader {
  return header;
}

/** The band that says which pixels of a band hold data; undefined where the file has none. As in GDAL, a mask wins over alpha. */
export function findValidityBand(header: RasterHeader, index: number): ValidityBand | undefined {
  const { mask, alpha } = header;
  if (mask) return { header: mask, index: mask.bands === 1 ? 0 : index };
  return alpha === undefined || alpha === index ? undefined : { header, index: alpha };
}
