/** Which cells a filter picks. */
import { type Bbox, cellBbox, type Grid } from '../geocode/index.js';
import type { TileFilter } from './filter.js';

/** Whether a cell is where a filter asks for. The empty geocode names no cell, so nothing is below it. */
export function cellMatches({ geocode, recurse, bbox }: TileFilter, grid: Grid, cell: string): boolean {
  const inCell = geocode === undefined || (recurse && geocode ? cell.startsWith(geocode) : cell === geocode);
  return inCell && (bbox === undefined || touches(bbox, cellBbox(grid, cell)));
}

/** Whether a cell's box and a search box (which may cross the antimeridian) share at least a point. */
export function touches([west, south, east, north]: Bbox, [w, s, e, n]: Bbox): boolean {
  const inLongitude = west <= east ? e >= west && w <= east : e >= west || w <= east;
  return inLongitude && n >= south && s <= north;
}

/** Whether a cell's box lies within a search box. */
export function contains([west, south, east, north]: Bbox, [w, s, e, n]: Bbox): boolean {
  const inLongitude = west <= east ? w >= west && e <= east : w >= west || e <= east;
  return inLongitude && s >= south && n <= north;
}
