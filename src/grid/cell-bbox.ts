import type { Bbox, Grid } from './grid.js';

/** Bounds of a cell in degrees. Cells never cross the antimeridian. */
export function cellBbox(grid: Grid, geocode: string): Bbox {
  const { west, south, east, north } = grid.bounds(geocode);
  return [...grid.toLonLat(west, south), ...grid.toLonLat(east, north)];
}
