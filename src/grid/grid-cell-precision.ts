import type { Grid } from './grid.js';
import { cellSizeMetres } from './grid-ellipsoid.js';

/** A narrower tile has too few patches to train on and too few pixels for its overhead. */
const MIN_CELL_WIDTH_PIXELS = 128;

/**
 * The finest precision whose cell at a point is at least 128 source pixels wide at the finest data group, whose pixels
 * are `resolution` ground metres wide; the coarsest precision if no cell is that wide. For a point outside of the grid, the
 * nearest point of the grid is used.
 */
export function defaultPrecision(grid: Grid, lon: number, lat: number, resolution: number): number {
  const { west, south, east, north } = grid.extent;
  const point = grid.fromLonLat(lon, lat);
  const x = Math.min(Math.max(point[0], west), east);
  const y = Math.min(Math.max(point[1], south), north);
  for (let precision = grid.maxPrecision; precision > grid.minPrecision; precision--) {
    if (cellSizeMetres(grid, grid.encode(x, y, precision)).width >= MIN_CELL_WIDTH_PIXELS * resolution)
      return precision;
  }
  return grid.minPrecision;
}
