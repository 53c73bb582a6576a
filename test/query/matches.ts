/** What a filter means, for one tile: searches must give what a scan over all records with `matches` gives. */
import { gridByName } from '../../src/geocode/index.js';
import type { TileFilter } from '../../src/query/index.js';
import { cellMatches } from '../../src/query/match-cell.js';
import type { TileRecord } from '../../src/storage/index.js';

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
