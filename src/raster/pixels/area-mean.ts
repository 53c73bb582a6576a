/** Resampling by area: the fine pixels that each pixel of another grid over the same area overlaps, and their mean. */
import type { PixelGrid } from '../../grid/index.js';
import type { PixelArray, Window } from '../raster.js';

/** The fine pixels of a row or column that one pixel overlaps: from `first` on, the overlap with each, in fine pixels. */
interface Overlap {
  first: number;
  weights: number[];
}

/** Pixels of a grid as areas of fine pixels. Positions count from the start of `covering`, the fine pixels that they overlap. */
export interface Areas {
  covering: Window;
  columns: Overlap[];
  rows: Overlap[];
}

/** Returns the areas of the pixels of `grid`, or of a window of it. The ratio of the sizes need not be an integer. */
export function pixelAreas(
  fine: PixelGrid,
  grid: PixelGrid,
  window: Window = { column: 0, row: 0, width: grid.width, height: grid.height },
): Areas {
  const columns = overlaps(fine.width, grid.width, window.column, window.width);
  const rows = overlaps(fine.height, grid.height, window.row, window.height);
  const covering = { column: columns.from, row: rows.from, width: columns.count, height: rows.count };
  return { covering, columns: columns.parts, rows: rows.parts };
}

function overlaps(pixels: number, parts: number, start: number, count: number) {
  const all = Array.from({ length: count }, (_, i): Overlap => {
    const from = ((start + i) * pixels) / parts;
    const to = ((start + i + 1) * pixels) / parts;
    const first = Math.floor(from);
    const weights: number[] = [];
    for (let pixel = first; pixel < to; pixel++)
      weights.push(Math.min(pixel + 1, to) - Math.max(pixel, from));
    return { first, weights };
  });
  const from = all[0].first;
  const last = all.at(-1)!;
  return {
    from,
    count: last.first + last.weights.length - from,
    parts: all.map(({ first, weights }) => ({ first: first - from, weights })),
  };
}

/**
 * Means of the pixels in each area, weighted by the overlap: float32 of float32, otherwise float64. Pixels that are NaN or `nodata` do not
 * count; an area without other pixels is NaN. `pixels` are those of `covering`.
 */
export function areaMean(pixels: Float32Array, areas: Areas, nodata?: number): Float32Array;
export function areaMean(pixels: PixelArray, areas: Areas, nodata?: number): Float32Array | Float64Array;
export function areaMean(
  pixels: PixelArray,
  { covering, columns, rows }: Areas,
  nodata?: number,
): Float32Array | Float64Array {
  const size = columns.length * rows.length;
  const means = pixels instanceof Float32Array ? new Float32Array(size) : new Float64Array(size);
  let to = 0;
  for (const { first: top, weights: down } of rows)
    for (const { first: left, weights: across } of columns) {
      let sum = 0;
      let area = 0;
      for (let y = 0; y < down.length; y++) {
        const from = (top + y) * covering.width + left;
        for (let x = 0; x < across.length; x++) {
          const value = pixels[from + x];
          if (value === nodata || Number.isNaN(value)) continue;
          const overlap = down[y] * across[x];
          sum += overlap * value;
          area += overlap;
        }
      }
      means[to++] = sum / area;
    }
  return means;
}
