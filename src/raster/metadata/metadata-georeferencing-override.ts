/** Georeferencing given by the user for a raster that has none, or a wrong one. */
import { noCrs } from '../errors.js';
import type { Affine, Crs, RasterHeader } from '../raster-types.js';

export interface GeoreferencingOverride {
  crs: Crs;
  /** Outer corners of the upper left and of the lower right pixel, in the units of the system (longitude first). */
  corners: readonly [upperLeftX: number, upperLeftY: number, lowerRightX: number, lowerRightY: number];
}

/** The georeferencing of an image of this size. Throws TW_RASTER_NO_CRS if the corners enclose no area. */
export function georeferenceByCorners(
  { crs, corners }: GeoreferencingOverride,
  { path, width, height }: Pick<RasterHeader, 'path' | 'width' | 'height'>,
): { crs: Crs; transform: Affine; isDescribedOutside: true } {
  const [left, top, right, bottom] = corners;
  if (!(right > left && top > bottom)) throw noCrs(path, 'its pixels have no extent');
  const transform = {
    originX: left,
    originY: top,
    xx: (right - left) / width,
    xy: 0,
    yx: 0,
    yy: (bottom - top) / height,
  };
  return { crs, transform, isDescribedOutside: true };
}
