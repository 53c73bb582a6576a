import { gridUnknown } from './errors.js';
import { geohash } from './geohash.js';
import type { Grid } from './grid.js';
import { quadtile } from './quadtile.js';

/** All grids. */
export const grids: readonly Grid[] = [geohash, quadtile];

/** The grid with this name. Throws TW_GEOCODE_GRID. */
export function gridByName(name: string): Grid {
  const grid = grids.find((candidate) => candidate.name === name);
  if (!grid) throw gridUnknown(name);
  return grid;
}
