import { cellSizeMetres } from './ellipsoid.js';
import type { Grid } from './grid.js';

/** A tile narrower than this gives too few patches to train on and too little pixels for its overhead. */
const MIN_CELL_WIDTH_PIXELS = 128;

/**
 * The finest precision whose cell at a place is at least 128 source pixels wide at the finest data group, whose pixels
 * are `resolution` ground metres wide; the coarsest precision where none is. A place beyond the grid takes the nearest on it.
 */
export function defaultPrecision(grid: Grid, lon: number, lat: number, resolution: number): number {
  const { west, south, east, north } = grid.extent;
  const place = grid.fromLonLat(lon, lat);
  const x = Math.min(Math.max(place[0], west), east);
  const y = Math.min(Math.max(place[1], south), north);
  for (let precision = grid.maxPrecision; precision > grid.minPrecision; precision--) {
    if (cellSizeMetres(grid, grid.encode(x, y, precision)).width >= MIN_CELL_WIDTH_PIXELS * resolution)
      return precision;
  }
  return grid.minPrecision;
}
