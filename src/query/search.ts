/** Searches over the column index: what a scan over all records would give. */
import { type Bbox, grids } from '../geocode/index.js';
import { type ColumnIndex, isWithin, type KeyRange, mergeRanges } from '../storage/index.js';
import type { TileFilter } from './filter.js';
import { bboxRanges, geocodeRanges } from './key-ranges.js';
import { cellMatches, contains } from './match-cell.js';
import { decodeToken, encodeToken } from './token.js';

export interface SearchPage {
  /** Tile ids, newest first: by start descending, then collection, then id. */
  ids: string[];
  /** How many tiles match in all. Exact. */
  numberMatched: number;
  /** Asks for the following page; absent on the last one. */
  next?: string;
}

/**
 * One page of the tiles that match a filter. The token names the last tile of the page before, so a walk gives every
 * tile that is present throughout exactly once, whatever is added or removed meanwhile. `limit` 0 only counts. Throws
 * TW_QUERY_TOKEN.
 */
export function searchTiles(
  index: ColumnIndex,
  filter: TileFilter,
  { limit, token }: { limit?: number; token?: string } = {},
): SearchPage {
  const area = compileArea(filter);
  const page = index.query({
    where: compileRow(index, filter, area),
    ranges: area?.ranges,
    ids: filter.ids,
    after: token === undefined ? undefined : decodeToken(token),
    limit,
  });
  const result: SearchPage = { ids: page.ids, numberMatched: page.matched };
  if (page.next) result.next = encodeToken(page.next);
  return result;
}

/** Where a filter asks for. */
interface Area {
  /** Keys that can match. */
  ranges: KeyRange[];
  /** Keys whose cells are known to match. */
  inside: KeyRange[];
}

const WORLD: Bbox = [-180, -90, 180, 90];

/** Undefined for everywhere. */
function compileArea({ geocode, recurse = false, bbox }: TileFilter): Area | undefined {
  if (geocode !== undefined) return { ranges: geocodeRanges(geocode, recurse), inside: [] };
  if (bbox === undefined || contains(bbox, WORLD)) return undefined;
  const { inside, edge } = bboxRanges(bbox);
  return { ranges: [...inside, ...edge], inside };
}

/** The test of a row. It holds the index's columns, so it is only good until the index changes. */
function compileRow(
  index: ColumnIndex,
  filter: TileFilter,
  area: Area | undefined,
): (row: number) => boolean {
  const { start, end, cloud, coverage, collection, platform, source } = index.columns;
  const collections =
    filter.collections && new Set(filter.collections.map((id) => index.collections.codeOf(id)));
  const wantedPlatform =
    filter.platform === undefined ? undefined : (index.platforms.codeOf(filter.platform) ?? -1);
  const wantedSource = filter.source === undefined ? undefined : (index.sources.codeOf(filter.source) ?? -1);
  const from = filter.start ?? -Infinity;
  const to = filter.end ?? Infinity;
  const minCoverage = Math.fround(filter.minCoverage ?? -Infinity);
  const boundsCloud = filter.minCloud !== undefined || filter.maxCloud !== undefined;
  const minCloud = Math.fround(filter.minCloud ?? -Infinity);
  const maxCloud = Math.fround(filter.maxCloud ?? Infinity);
  const inCell = area && compileCell(index, filter, area);
  return (row) =>
    end[row] >= from &&
    start[row] <= to &&
    coverage[row] >= minCoverage &&
    (!boundsCloud || (cloud[row] >= minCloud && cloud[row] <= maxCloud)) &&
    (collections === undefined || collections.has(collection[row])) &&
    (wantedPlatform === undefined || platform[row] === wantedPlatform) &&
    (wantedSource === undefined || source[row] === wantedSource) &&
    (inCell === undefined || inCell(row));
}

/** The test of a row's cell. Rows come in the order of their cells, so the answer for the last cell is kept. */
function compileCell(index: ColumnIndex, filter: TileFilter, { inside }: Area): (row: number) => boolean {
  const { grid, key, precision } = index.columns;
  const matching = mergeRanges(inside);
  let last = { grid: -1, key: -1, precision: -1, matches: false };
  return (row) => {
    const cell = { grid: grid[row], key: key[row], precision: precision[row] };
    if (cell.key !== last.key || cell.precision !== last.precision || cell.grid !== last.grid) {
      const known = isWithin(matching, cell.grid, cell.key);
      const cellGrid = grids[cell.grid];
      last = {
        ...cell,
        matches: known || cellMatches(filter, cellGrid, cellGrid.geocode(cell.key, cell.precision)),
      };
    }
    return last.matches;
  };
}
