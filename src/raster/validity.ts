/** Which pixels a file itself says hold data: by an internal mask or an alpha band. */
import type { RasterHeader } from './types.js';

/** A band of a raster; its pixels that are 0 hold no data. */
export interface ValidityBand {
  header: RasterHeader;
  /** From 0. */
  index: number;
}

/** The band that says which pixels of a band hold data; undefined where the file has none. As in GDAL, a mask wins over alpha. */
export function validityBandOf(header: RasterHeader, index: number): ValidityBand | undefined {
  const { mask, alpha } = header;
  if (mask) return { header: mask, index: mask.bands === 1 ? 0 : index };
  return alpha === undefined || alpha === index ? undefined : { header, index: alpha };
}
