/** What a filter means, for one tile. Searches give what a scan over all records with `matches` gives. */
import { type Bbox, cellBbox, type Grid, gridByName } from '../geocode/index.js';
import type { TileRecord } from '../storage/index.js';
import type { TileFilter } from './filter.js';

/** Whether a tile is what a filter asks for. Fields that are absent ask for nothing. */
export function matches(filter: TileFilter, tile: TileRecord): boolean {
  return (
    (filter.ids === undefined || filter.ids.includes(tile.id)) &&
    (filter.collections === undefined || filter.collections.includes(tile.collection)) &&
    (filter.source === undefined || filter.source === tile.source) &&
    (filter.platform === undefined || filter.platform === tile.platform) &&
    (filter.start === undefined || tile.end >= filter.start) &&
    (filter.end === undefined || tile.start <= filter.end) &&
    (filter.minCloud === undefined || atLeast(tile.cloudCover, filter.minCloud)) &&
    (filter.maxCloud === undefined || atLeast(filter.maxCloud, tile.cloudCover)) &&
    (filter.minCoverage === undefined || atLeast(tile.coverage, filter.minCoverage)) &&
    cellMatches(filter, gridByName(tile.grid), tile.geocode)
  );
}

/** Percentages are compared as float32, which is how the index keeps them. An unknown one fulfils no bound. */
function atLeast(percent: number | null, bound: number | null): boolean {
  return percent !== null && bound !== null && Math.fround(percent) >= Math.fround(bound);
}

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
