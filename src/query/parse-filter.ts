/** Filters from text: STAC parameters and command-line flags. Messages name the parameter as it is called there. */
import { type Bbox, grids } from '../geocode/index.js';
import type { TileSource } from '../storage/index.js';
import { badBbox, badGeocode, badLimit, badList, badPercent, badSource } from './errors.js';
import type { TileFilter } from './filter.js';
import { parseDatetime } from './parse-datetime.js';

/** What a search asks for, as text. Lists are separated by commas. */
export interface FilterText {
  ids?: string;
  collections?: string;
  bbox?: string;
  geocode?: string;
  recurse?: boolean;
  datetime?: string;
  minCloud?: string;
  maxCloud?: string;
  minCoverage?: string;
  source?: string;
  platform?: string;
}

/**
 * The filter of a text. `plainDates` also takes dates without a time (whole days in UTC), which STAC APIs must refuse.
 * Throws TW_QUERY_*.
 */
export function parseFilter(text: FilterText, { plainDates = false } = {}): TileFilter {
  const filter: TileFilter = {};
  if (text.ids !== undefined) filter.ids = parseList('ids', text.ids);
  if (text.collections !== undefined) filter.collections = parseList('collections', text.collections);
  if (text.bbox !== undefined) filter.bbox = parseBbox(text.bbox);
  if (text.geocode !== undefined) filter.geocode = parseGeocode(text.geocode);
  if (text.recurse) {
    if (filter.geocode === undefined) throw badGeocode('');
    filter.recurse = true;
  }
  if (text.datetime !== undefined) Object.assign(filter, parseDatetime(text.datetime, { plainDates }));
  if (text.minCloud !== undefined) filter.minCloud = parsePercent('min-cloud', text.minCloud);
  if (text.maxCloud !== undefined) filter.maxCloud = parsePercent('max-cloud', text.maxCloud);
  if (text.minCoverage !== undefined) filter.minCoverage = parsePercent('min-coverage', text.minCoverage);
  if (text.source !== undefined) filter.source = parseSource(text.source);
  if (text.platform !== undefined) filter.platform = text.platform;
  return filter;
}

/** west,south,east,north in degrees; of six numbers, the heights are left out. West > east crosses the antimeridian. */
export function parseBbox(text: string): Bbox {
  return checkBbox(text.split(',').map(parseNumber), text);
}

/** The same from numbers, as they come in a JSON body. */
export function checkBbox(numbers: readonly number[], given = numbers.join(',')): Bbox {
  if (!numbers.every(Number.isFinite)) throw badBbox(given, 'has a part that is not a number');
  if (numbers.length !== 4 && numbers.length !== 6) throw badBbox(given, `has ${numbers.length} numbers`);
  const [west, south, east, north] = (
    numbers.length === 4 ? numbers : [numbers[0], numbers[1], numbers[3], numbers[4]]
  ) as Bbox;
  if (numbers.length === 6 && numbers[2]! > numbers[5]!)
    throw badBbox(given, 'has its lower height above its upper one');
  if (Math.abs(west) > 180 || Math.abs(east) > 180) throw badBbox(given, 'has a longitude beyond 180');
  if (Math.abs(south) > 90 || Math.abs(north) > 90) throw badBbox(given, 'has a latitude beyond 90');
  if (south > north) throw badBbox(given, 'has its south above its north');
  return [west, south, east, north];
}

/** A geohash or a quadkey, in lower case. */
export function parseGeocode(text: string): string {
  const geocode = text.toLowerCase();
  if (!grids.some((grid) => grid.accepts(geocode))) throw badGeocode(text);
  return geocode;
}

/** A number from 0 to 100. */
export function parsePercent(parameter: string, text: string): number {
  const percent = parseNumber(text);
  if (!(percent >= 0 && percent <= 100)) throw badPercent(parameter, text);
  return percent;
}

const sources: Record<TileSource, true> = {
  raw: true,
  split: true,
  filled: true,
  coalesced: true,
  predicted: true,
  'cloud-free': true,
};

export function parseSource(text: string): TileSource {
  if (!Object.hasOwn(sources, text)) throw badSource(text, Object.keys(sources).join(', '));
  return text as TileSource;
}

/** How many tiles a page has at most. */
export function parseLimit(text: string, max = 10_000): number {
  const limit = parseNumber(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > max) throw badLimit(text, max);
  return limit;
}

function parseList(parameter: string, text: string): string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('')) throw badList(parameter, text);
  return names;
}

/** A plain decimal number, NaN for anything else: Number() also takes "", "0x10" and "Infinity". */
function parseNumber(text: string): number {
  return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : Number.NaN;
}
