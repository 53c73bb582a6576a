import { gridUnknown } from './errors.js';
import { geohash } from './geohash.js';
import type { Grid } from './grid.js';
import { quadtile } from './quadtile.js';

/** Every grid there is. */
export const grids: readonly Grid[] = [geohash, quadtile];

/** The grid of a name. Throws TW_GEOCODE_GRID. */
export function gridByName(name: string): Grid {
  const grid = grids.find((candidate) => candidate.name === name);
  if (!grid) throw gridUnknown(name);
  return grid;
}
