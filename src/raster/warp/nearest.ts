/** Nearest-neighbour resampling over a control grid. Each data type has its own copy of this module: see warp.ts. */
import type { PixelArray } from '../raster.js';
import type { ControlGrid } from './control-grid.js';
import { lerpRows, PIXEL_EPSILON } from './squares.js';

/** A rectangle of a source image. */
export interface SourceWindow {
  pixels: PixelArray;
  width: number;
  height: number;
  /** Position of its first pixel in the image. */
  column: number;
  row: number;
  /** The value of pixels without data; NaN if there is none. NaN pixels never hold data. */
  nodata: number;
}

/**
 * The nearest pixel of the source for each pixel of `out`. If it holds no data, `out` becomes `fillValue` and `valid` 0; otherwise
 * `valid` does not change. Returns the number of pixels with data.
 */
export function nearest(
  { pixels, width, height, column, row, nodata }: SourceWindow,
  grid: ControlGrid,
  out: PixelArray,
  valid: Uint8Array,
  fillValue: number,
): number {
  const { step, columns, x: gridX, y: gridY } = grid;
  const outWidth = grid.width;
  let missing = 0;
  let o = 0;
  for (let y = 0; y < grid.height; y++) {
    const pointRow = Math.floor(y / step) * columns;
    const part = (y % step) / step;
    let endX = lerpRows(gridX, pointRow, columns, part) - column + PIXEL_EPSILON;
    let endY = lerpRows(gridY, pointRow, columns, part) - row + PIXEL_EPSILON;
    for (let x = 0, point = pointRow + 1; x < outWidth; x += step, point++) {
      const startX = endX;
      const startY = endY;
      endX = lerpRows(gridX, point, columns, part) - column + PIXEL_EPSILON;
      endY = lerpRows(gridY, point, columns, part) - row + PIXEL_EPSILON;
      const dx = (endX - startX) / step;
      const dy = (endY - startY) / step;
      const count = Math.min(step, outWidth - x);
      const lastX = startX + dx * (count - 1);
      const lastY = startY + dy * (count - 1);
      const left = Math.min(startX, lastX);
      const right = Math.max(startX, lastX);
      const top = Math.min(startY, lastY);
      const bottom = Math.max(startY, lastY);
      if (right < 0 || bottom < 0 || left >= width || top >= height) {
        out.fill(fillValue, o, o + count);
        valid.fill(0, o, o + count);
        o += count;
        missing += count;
        continue;
      }
      const inside = left >= 0 && top >= 0 && right < width && bottom < height;
      for (let i = 0; i < count; i++, o++) {
        const sourceX = startX + dx * i;
        const sourceY = startY + dy * i;
        if (inside || (sourceX >= 0 && sourceY >= 0 && sourceX < width && sourceY < height)) {
          const value = pixels[(sourceY | 0) * width + (sourceX | 0)];
          if (value !== nodata && !Number.isNaN(value)) {
            out[o] = value;
            continue;
          }
        }
        out[o] = fillValue;
        valid[o] = 0;
        missing++;
      }
    }
  }
  return o - missing;
}
