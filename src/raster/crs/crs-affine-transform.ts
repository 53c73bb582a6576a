/** Converts between pixel positions of an image and coordinates of its system. */
import type { Affine } from '../raster-types.js';

/** Coordinates of a position in an image; pixel c covers columns [c, c + 1). */
export function pixelToMap(transform: Affine, column: number, row: number): [x: number, y: number] {
  const { originX, originY, xx, xy, yx, yy } = transform;
  return [originX + xx * column + xy * row, originY + yx * column + yy * row];
}

/** The inverse: the position in an image, in pixels, of coordinates. */
export function mapToPixel(transform: Affine, x: number, y: number): [column: number, row: number] {
  const { originX, originY, xx, xy, yx, yy } = transform;
  const determinant = xx * yy - xy * yx;
  const dx = x - originX;
  const dy = y - originY;
  return [(yy * dx - xy * dy) / determinant, (xx * dy - yx * dx) / determinant];
}

/** The georeferencing of six numbers in GDAL's order: origin x, xx, xy, origin y, yx, yy. */
export function affineOfGdal([originX, xx, xy, originY, yx, yy]: readonly number[]): Affine {
  return { originX, originY, xx, xy, yx, yy };
}

/** False if pixels have no extent, or the georeferencing is not finite. */
export function isInvertible({ originX, originY, xx, xy, yx, yy }: Affine): boolean {
  return [originX, originY, xx, xy, yx, yy].every(Number.isFinite) && xx * yy - xy * yx !== 0;
}
