/**
 * Filters from the parameters of a URL (text), a JSON body (numbers and lists), and command-line flags. Messages name the
 * parameter by its flag.
 */
import { messageOf } from '../../errors.js';
import { grids } from '../../grid/index.js';
import { type TileSource, tileSources } from '../../storage/index.js';
import { documented } from '../../utils/json-schema.js';
import { parseJson } from '../../utils/json-text.js';
import { checkLanguage, FILTER_LANGUAGES, readCql2 } from '../cql2/index.js';
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
import {
  BBOX_PATTERN,
  BBOX_SIZES,
  checkBbox,
  DATETIME_PATTERNS,
  parseBbox,
  parseDatetime,
  parseNumber,
} from '../values/index.js';
import { COMPARISON_NAMES, parseQueryExtension } from './query-extension-parameter.js';

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

const CRS84 = 'http://www.opengis.net/def/crs/OGC/1.3/CRS84';

const text = { type: 'string' };
/** A single word or name. */
const word = { type: 'string', maxLength: 1000 };
const percent = documented({ type: 'number' }, { minimum: 0, maximum: 100 });
const names = documented(text, { pattern: '^\\s*[^\\s,][^,]*(,\\s*[^\\s,][^,]*)*$' });
/** Some clients send a list of one name as that name. */
const list = { anyOf: [{ type: 'array', items: documented(text, { pattern: '\\S' }) }, names] };
const json = documented(text, { pattern: '^\\s*\\{' });

const GEOCODE_PATTERN = '^([0-9b-hjkmnp-zB-HJKMNP-Z]{1,9}|[0-3]{1,24})$';
const GEOMETRY_TYPES = [
  ...['Point', 'MultiPoint', 'LineString', 'MultiLineString', 'Polygon', 'MultiPolygon'],
  'GeometryCollection',
];

/** JSON Schema of a filter's `datetime`. With `periods`, days, months and years without a time are accepted. */
export const datetimeSchema = ({ periods = false } = {}) =>
  documented(
    { ...word, description: 'An instant or an interval, RFC 3339. It must not end before it starts' },
    { pattern: DATETIME_PATTERNS[periods ? 'periods' : 'none'] },
  );

/** JSON Schema of the filter in a body. */
export const filterBody = {
  ids: list,
  collections: list,
  bbox: documented(
    {
      type: 'array',
      items: { type: 'number' },
      description: 'west, south, east, north in degrees, with south <= north; not together with intersects',
    },
    { anyOf: BBOX_SIZES },
  ),
  intersects: documented(
    { description: 'GeoJSON geometry in longitude and latitude; not together with bbox' },
    { type: 'object', required: ['type'], properties: { type: { enum: GEOMETRY_TYPES } } },
  ),
  geocode: documented(word, { pattern: GEOCODE_PATTERN }),
  recurse: { type: 'boolean', description: 'Also the cells inside of geocode, which it requires' },
  datetime: datetimeSchema(),
  minCloud: percent,
  maxCloud: percent,
  minCoverage: percent,
  source: documented(word, { enum: tileSources }),
  platform: word,
  filter: documented(
    { description: 'CQL2 as JSON or as text' },
    {
      anyOf: [
        { type: 'object', required: ['op', 'args'] },
        { type: 'string', minLength: 1 },
      ],
    },
  ),
  'filter-lang': documented(word, { enum: FILTER_LANGUAGES }),
  'filter-crs': documented(word, { enum: [CRS84] }),
  query: documented(
    { description: 'Comparisons by property: {"eo:cloud_cover": {"lte": 10}}' },
    {
      type: 'object',
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        properties: Object.fromEntries(COMPARISON_NAMES.map((name) => [name, {}])),
      },
    },
  ),
};

/** JSON Schema of the filter in a URL. */
export const filterQuery = {
  ...filterBody,
  ids: names,
  collections: names,
  bbox: documented(
    { ...text, description: 'west,south,east,north in degrees; not together with intersects' },
    { pattern: BBOX_PATTERN },
  ),
  intersects: { ...json, description: 'GeoJSON geometry in longitude and latitude; not together with bbox' },
  filter: documented(text, { minLength: 1, description: 'CQL2 as JSON or as text' }),
  query: { ...json, description: 'Comparisons by property: {"eo:cloud_cover": {"lte": 10}}' },
};

/** JSON Schema of the filter of a process. */
export const filterSchema = { type: 'object', additionalProperties: false, properties: filterBody };

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
  const percentages = [
    ['min-cloud', minCloud, '>=', 'eo:cloud_cover'],
    ['max-cloud', maxCloud, '<=', 'eo:cloud_cover'],
    ['min-coverage', minCoverage, '>=', 'pixel_coverage'],
  ] as const;
  for (const [name, given, op, property] of percentages)
    if (given !== undefined) conditions.push({ op, property, value: parsePercent(name, given) });
  if (source !== undefined) conditions.push({ op: '=', property: 'source', value: parseSource(source) });
  if (platform !== undefined) conditions.push({ op: '=', property: 'platform', value: platform });
  const crs = params['filter-crs'];
  if (crs !== undefined && crs !== CRS84) throw badFilterLanguage('filter-crs', crs, CRS84);
  checkLanguage(params['filter-lang']);
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
    return parseJson(value);
  } catch (error) {
    throw badGeometry.because(error, `intersects: ${messageOf(error)}`);
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
