/**
 * Filters from the parameters of a URL (text), a JSON body (numbers and lists), and command-line flags. Messages name the
 * parameter by its flag.
 */
import { grids } from '../../grid/index.js';
import { type TileSource, tileSources } from '../../storage/index.js';
import { readCql2 } from '../cql2/index.js';
import {
  badFilterLanguage,
  badGeocode,
  badGeometry,
  badList,
  badPercent,
  badSource,
  conflictingArea,
} from '../errors.js';
import { and, checkNesting, checkSize, type Filter, literalPattern } from '../filter/index.js';
import { readGeometry } from '../geometry/index.js';
import { checkBbox, parseBbox, parseDatetime, parseNumber } from '../values/index.js';
import { parseQueryExtension } from './query-extension-parameter.js';

/** Conditions of a search, combined with AND. In text, lists are separated by commas, and objects are JSON. */
export interface FilterParams {
  ids?: string | string[];
  collections?: string | string[];
  bbox?: string | number[];
  /** GeoJSON geometry. */
  intersects?: unknown;
  geocode?: string;
  recurse?: boolean;
  datetime?: string;
  minCloud?: string | number;
  maxCloud?: string | number;
  minCoverage?: string | number;
  source?: string;
  platform?: string;
  /** CQL2, as text or as JSON. */
  filter?: unknown;
  'filter-lang'?: string;
  'filter-crs'?: string;
  /** Comparisons by property, in the form of the `query` extension of STAC APIs. */
  query?: unknown;
}

const text = { type: 'string' };
/** A single word or name. */
const word = { type: 'string', maxLength: 1000 };
const percent = { type: 'number' };
/** Some clients send a list of one name as that name. */
const list = { anyOf: [{ type: 'array', items: text }, text] };

/** JSON Schema of the filter in a body. */
export const filterBody = {
  ids: list,
  collections: list,
  bbox: { type: 'array', items: { type: 'number' } },
  intersects: { description: 'GeoJSON geometry' },
  geocode: word,
  recurse: { type: 'boolean' },
  datetime: word,
  minCloud: percent,
  maxCloud: percent,
  minCoverage: percent,
  source: word,
  platform: word,
  filter: { description: 'CQL2 as JSON or as text' },
  'filter-lang': word,
  'filter-crs': word,
  query: { description: 'Comparisons by property: {"eo:cloud_cover": {"lte": 10}}' },
};

/** JSON Schema of the filter in a URL. */
export const filterQuery = {
  ...filterBody,
  ids: text,
  collections: text,
  bbox: text,
  intersects: text,
  filter: text,
  query: text,
};

const CRS84 = 'http://www.opengis.net/def/crs/OGC/1.3/CRS84';

/**
 * The filter of some parameters. With `periods`, days, months and years without a time (in UTC) are accepted, which STAC APIs must
 * refuse. Throws TW_QUERY_*.
 */
export function parseFilter(params: FilterParams, { periods = false } = {}): Filter {
  const { ids, collections, datetime, minCloud, maxCloud, minCoverage, source, platform } = params;
  for (const given of [params.filter, params.query, params.intersects]) checkNesting(given);
  const conditions: Filter[] = [];
  if (ids !== undefined) conditions.push({ op: 'in', property: 'id', values: parseList('ids', ids) });
  if (collections !== undefined) {
    const values = parseList('collections', collections);
    conditions.push({ op: 'in', property: 'collection', values });
  }
  conditions.push(...areaOf(params), ...geocodeOf(params));
  if (datetime !== undefined) {
    const { start = null, end = null } = parseDatetime(datetime, { dates: periods ? 'periods' : 'none' });
    conditions.push({ op: 't_intersects', property: 'datetime', period: [start, end] });
  }
  if (minCloud !== undefined) {
    const value = parsePercent('min-cloud', minCloud);
    conditions.push({ op: '>=', property: 'eo:cloud_cover', value });
  }
  if (maxCloud !== undefined) {
    const value = parsePercent('max-cloud', maxCloud);
    conditions.push({ op: '<=', property: 'eo:cloud_cover', value });
  }
  if (minCoverage !== undefined) {
    const value = parsePercent('min-coverage', minCoverage);
    conditions.push({ op: '>=', property: 'pixel_coverage', value });
  }
  if (source !== undefined) conditions.push({ op: '=', property: 'source', value: parseSource(source) });
  if (platform !== undefined) conditions.push({ op: '=', property: 'platform', value: platform });
  const crs = params['filter-crs'];
  if (crs !== undefined && crs !== CRS84) throw badFilterLanguage('filter-crs', crs, CRS84);
  if (params.filter !== undefined) conditions.push(readCql2(params.filter, params['filter-lang']));
  if (params.query !== undefined) conditions.push(parseQueryExtension(params.query));
  return checkSize(and(conditions));
}

/** Checks the filter in the inputs of a process. Throws the errors of `parseFilter`. */
export function checkFilter(inputs: unknown): void {
  parseFilter((inputs as { filter?: FilterParams }).filter ?? {});
}

function areaOf({ bbox, intersects }: FilterParams): Filter[] {
  if (bbox !== undefined && intersects !== undefined) throw conflictingArea();
  if (intersects !== undefined) return [{ op: 's_intersects', shape: readGeometry(jsonOf(intersects)) }];
  if (bbox === undefined) return [];
  return [
    { op: 's_intersects', shape: { bbox: typeof bbox === 'string' ? parseBbox(bbox) : checkBbox(bbox) } },
  ];
}

function jsonOf(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch (error) {
    throw badGeometry.because(error, 'intersects is not JSON');
  }
}

/** The condition of a geohash or a quadkey; with `recurse`, all cells below it match as well. */
function geocodeOf({ geocode, recurse }: FilterParams): Filter[] {
  if (geocode === undefined) {
    if (recurse) throw badGeocode(undefined);
    return [];
  }
  const value = geocode.toLowerCase();
  if (!grids.some((grid) => grid.accepts(value))) throw badGeocode(geocode);
  if (!recurse) return [{ op: '=', property: 'geocode', value }];
  return [{ op: 'like', property: 'geocode', pattern: `${literalPattern(value)}%` }];
}

/** Parses a number from 0 to 100. */
function parsePercent(parameter: string, given: string | number): number {
  const value = parseNumber(String(given));
  if (!(value >= 0 && value <= 100)) throw badPercent(parameter, String(given));
  return value;
}

/** Throws TW_QUERY_SOURCE. */
export function parseSource(given: string): TileSource {
  const source = tileSources.find((one) => one === given);
  if (source === undefined) throw badSource(given, tileSources.join(', '));
  return source;
}

export function parseList(parameter: string, given: string | string[]): string[] {
  const names = (typeof given === 'string' ? given.split(',') : given).map((name) => name.trim());
  if (names.includes('')) throw badList(parameter, String(given));
  return names;
}
