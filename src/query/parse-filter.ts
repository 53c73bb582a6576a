/**
 * Filters as people and programs give them: parameters of a URL (text), a JSON body (numbers and lists), and command-line
 * flags. Messages name the parameter by its flag.
 */
import { type Bbox, grids } from '../geocode/index.js';
import type { TileSource } from '../storage/index.js';
import { badBbox, badGeocode, badList, badPercent, badSource } from './errors.js';
import type { TileFilter } from './filter.js';
import { parseDatetime } from './parse-datetime.js';

/** What a search asks for. In text, lists are separated by commas. */
export interface FilterParams {
  ids?: string | string[];
  collections?: string | string[];
  bbox?: string | number[];
  geocode?: string;
  recurse?: boolean;
  datetime?: string;
  minCloud?: string | number;
  maxCloud?: string | number;
  minCoverage?: string | number;
  source?: string;
  platform?: string;
}

const text = { type: 'string' };
const percent = { type: 'number' };
const list = { type: 'array', items: text };

/** JSON Schema of the filter in a body. */
export const filterBody = {
  ids: list,
  collections: list,
  bbox: { type: 'array', items: { type: 'number' } },
  geocode: text,
  recurse: { type: 'boolean' },
  datetime: text,
  minCloud: percent,
  maxCloud: percent,
  minCoverage: percent,
  source: text,
  platform: text,
};

/** JSON Schema of the filter in a URL. */
export const filterQuery = { ...filterBody, ids: text, collections: text, bbox: text };

/**
 * The filter of some parameters. `plainDates` also takes dates without a time (whole days in UTC), which STAC APIs must
 * refuse. Throws TW_QUERY_*.
 */
export function parseFilter(params: FilterParams, { plainDates = false } = {}): TileFilter {
  const filter: TileFilter = {};
  if (params.ids !== undefined) filter.ids = parseList('ids', params.ids);
  if (params.collections !== undefined) filter.collections = parseList('collections', params.collections);
  if (params.bbox !== undefined) {
    filter.bbox = typeof params.bbox === 'string' ? parseBbox(params.bbox) : checkBbox(params.bbox);
  }
  if (params.geocode !== undefined) filter.geocode = parseGeocode(params.geocode);
  if (params.recurse) {
    if (filter.geocode === undefined) throw badGeocode('');
    filter.recurse = true;
  }
  if (params.datetime !== undefined) Object.assign(filter, parseDatetime(params.datetime, { plainDates }));
  if (params.minCloud !== undefined) filter.minCloud = parsePercent('min-cloud', String(params.minCloud));
  if (params.maxCloud !== undefined) filter.maxCloud = parsePercent('max-cloud', String(params.maxCloud));
  if (params.minCoverage !== undefined) {
    filter.minCoverage = parsePercent('min-coverage', String(params.minCoverage));
  }
  if (params.source !== undefined) filter.source = parseSource(params.source);
  if (params.platform !== undefined) filter.platform = params.platform;
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
  if (numbers.length === 6 && numbers[2] > numbers[5])
    throw badBbox(given, 'has its lower height above its upper one');
  if (Math.abs(west) > 180 || Math.abs(east) > 180) throw badBbox(given, 'has a longitude beyond 180');
  if (Math.abs(south) > 90 || Math.abs(north) > 90) throw badBbox(given, 'has a latitude beyond 90');
  if (south > north) throw badBbox(given, 'has its south above its north');
  return [west, south, east, north];
}

/** A geohash or a quadkey, in lower case. */
function parseGeocode(text: string): string {
  const geocode = text.toLowerCase();
  if (!grids.some((grid) => grid.accepts(geocode))) throw badGeocode(text);
  return geocode;
}

/** A number from 0 to 100. */
function parsePercent(parameter: string, text: string): number {
  const percent = parseNumber(text);
  if (!(percent >= 0 && percent <= 100)) throw badPercent(parameter, text);
  return percent;
}

const SOURCES: Record<TileSource, true> = {
  raw: true,
  split: true,
  filled: true,
  coalesced: true,
  predicted: true,
  'cloud-free': true,
};

function parseSource(text: string): TileSource {
  if (!Object.hasOwn(SOURCES, text)) throw badSource(text, Object.keys(SOURCES).join(', '));
  return text as TileSource;
}

function parseList(parameter: string, given: string | string[]): string[] {
  const names = (typeof given === 'string' ? given.split(',') : given).map((name) => name.trim());
  if (names.includes('')) throw badList(parameter, String(given));
  return names;
}

/** A plain decimal number, NaN for anything else: Number() also takes "", "0x10" and "Infinity". */
function parseNumber(text: string): number {
  return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : NaN;
}
