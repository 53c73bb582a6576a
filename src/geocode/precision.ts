import type { Grid } from './grid.js';
import { groundSize } from './ground.js';

/** A tile narrower than this gives too few patches to train on and too little pixels for its overhead. */
const MIN_WIDTH = 128;

/**
 * The finest precision whose cell at a place is at least 128 source pixels wide at the finest data group, whose pixels
 * are `resolution` ground metres wide; the coarsest precision where none is. Throws TW_GEOCODE_OUTSIDE.
 */
export function defaultPrecision(grid: Grid, lon: number, lat: number, resolution: number): number {
  const [x, y] = grid.fromLonLat(lon, lat);
  for (let precision = grid.maxPrecision; precision > grid.minPrecision; precision--) {
    if (groundSize(grid, grid.encode(x, y, precision)).width >= MIN_WIDTH * resolution) return precision;
  }
  return grid.minPrecision;
}
