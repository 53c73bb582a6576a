/** Numbers of pixels of a cell. */

import type { Grid } from './grid.js';
import { cellSizeMetres } from './grid-ellipsoid.js';

export interface PixelGrid {
  width: number;
  height: number;
}

/** Relative difference up to which two lengths, or a ratio and a whole number, count as equal. */
const SIZE_TOLERANCE = 1e-3;

/**
 * Pixel grid of a cell for each band group of a product. It depends only on the groups' nominal pixel sizes in ground metres,
 * so all dates of a cell stack. Geohash: the cell's WGS84 arc lengths divided by the pixel size; the coarsest group is
 * rounded first, and finer groups are a whole multiple of it if their sizes are. Quadtile: for each group the smallest
 * power of two that is not coarser than its pixels.
 */
export function computePixelGrids(
  grid: Grid,
  geocode: string,
  resolutions: readonly { x: number; y: number }[],
): PixelGrid[] {
  const ground = cellSizeMetres(grid, geocode);
  const counts = grid.name === 'geohash' ? wholeMultiples : powersOfTwo;
  const widths = counts(
    ground.width,
    resolutions.map((resolution) => resolution.x),
  );
  const heights = counts(
    ground.height,
    resolutions.map((resolution) => resolution.y),
  );
  return widths.map((width, i) => ({ width, height: heights[i] }));
}

function wholeMultiples(length: number, sizes: number[]): number[] {
  const coarsest = Math.max(...sizes);
  const coarsestCount = Math.max(1, Math.round(length / coarsest));
  return sizes.map((size) => {
    const ratio = coarsest / size;
    const whole = Math.round(ratio);
    const isWhole = Math.abs(ratio - whole) <= SIZE_TOLERANCE * whole;
    return isWhole ? coarsestCount * whole : Math.max(1, Math.round(length / size));
  });
}

function powersOfTwo(length: number, sizes: number[]): number[] {
  return sizes.map((size) => {
    let count = 1;
    while (length / count > size * (1 + SIZE_TOLERANCE)) count *= 2;
    return count;
  });
}
