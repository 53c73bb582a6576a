/**
 * The parameters of a search in a URL (text), a JSON body (numbers and lists) and flags of commands: filters, the order, and paging tokens.
 * Messages name the parameter by its flag.
 */

import { createHash } from 'node:crypto';
import { toArray } from '../async/index.js';
import { messageOf } from '../errors.js';
import { grids } from '../grid/index.js';
import {
  type Cursor,
  type SortColumn,
  type SortOrder,
  type SortValue,
  type Storage,
  type TileSource,
  tileSources,
} from '../storage/index.js';
import { documented } from '../utils/json-schema.js';
import { parseJson } from '../utils/json-text.js';
import { checkLanguage, FILTER_LANGUAGES, readCql2, readCql2Json } from './cql2/json.js';
import { isObject } from './cql2/operands.js';
import {
  badFilterLanguage,
  badGeocode,
  badGeometry,
  badList,
  badPercent,
  badQueryExtension,
  badSort,
  badSource,
  badToken,
  conflictingArea,
  noSuchCollections,
  tokenOfOtherSearch,
} from './errors.js';
import {
  and,
  checkNesting,
  checkSize,
  type Filter,
  type Property,
  type PropertyKind,
  type PropertyName,
  parsePropertyName,
  propertyKind,
  queryables,
} from './filter.js';
import { readGeometry } from './geometry.js';
import { literalPattern } from './operators.js';
import {
  BBOX_PATTERN,
  BBOX_SIZES,
  checkBbox,
  DATETIME_PATTERNS,
  parseBbox,
  parseDatetime,
  parseNumber,
} from './values.js';

/** The operators of the `query` extension of STAC APIs, comparisons by property, and their CQL2. */
const QUERY_OPERATORS: Record<string, (value: unknown) => [op: string, value: unknown]> = {
  eq: (value) => ['=', value],
  neq: (value) => ['<>', value],
  lt: (value) => ['<', value],
  lte: (value) => ['<=', value],
  gt: (value) => ['>', value],
  gte: (value) => ['>=', value],
  startsWith: (value) => ['like', `${literalText(value)}%`],
  endsWith: (value) => ['like', `%${literalText(value)}`],
  contains: (value) => ['like', `%${literalText(value)}%`],
  in: (value) => ['in', value],
};

/** Names of the comparisons of a property. */
const COMPARISON_NAMES = Object.keys(QUERY_OPERATORS);

/** Parses `{"eo:cloud_cover": {"lte": 10}}`, also as JSON text. Throws TW_QUERY_QUERY, and the errors of `readCql2Json`. */
function parseQueryExtension(given: unknown): Filter {
  const query = parseQueryObject(given);
  return and(
    Object.entries(query).flatMap(([property, comparisons]) => {
      if (!isObject(comparisons)) throw badQueryExtension(`"${property}" has no object of comparisons`);
      return Object.entries(comparisons).map(([name, value]) => {
        if (!Object.hasOwn(QUERY_OPERATORS, name)) {
          throw badQueryExtension(`"${name}" is not a comparison (these are ${COMPARISON_NAMES.join(', ')})`);
        }
        const [op, operand] = QUERY_OPERATORS[name]!(typedValue(property, value));
        return readCql2Json({ op, args: [{ property }, operand] });
      });
    }),
  );
}

function parseQueryObject(given: unknown): Record<string, unknown> {
  let value = given;
  try {
    if (typeof given === 'string') value = parseJson(given);
  } catch (error) {
    throw badQueryExtension.because(error, messageOf(error));
  }
  if (!isObject(value)) throw badQueryExtension('it is not an object');
  return value;
}

/** Some clients write numbers as texts in the JSON of a URL. */
function typedValue(property: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => typedValue(property, one));
  if (typeof value !== 'string' || propertyKind(parsePropertyName(property)) !== 'number') return value;
  const number = parseNumber(value);
  return Number.isNaN(number) ? value : number;
}

function literalText(value: unknown): string {
  if (typeof value !== 'string') throw badQueryExtension('startsWith, endsWith and contains take a text');
  return literalPattern(value);
}

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

const textSchema = { type: 'string' };
/** A single word or name. */
const wordSchema = { type: 'string', maxLength: 1000 };
const percentSchema = documented({ type: 'number' }, { minimum: 0, maximum: 100 });
const namesSchema = documented(textSchema, { pattern: '^\\s*[^\\s,][^,]*(,\\s*[^\\s,][^,]*)*$' });
/** Some clients send a list of one name as that name. */
const listSchema = {
  anyOf: [{ type: 'array', items: documented(textSchema, { pattern: '\\S' }) }, namesSchema],
};
const jsonSchema = documented(textSchema, { pattern: '^\\s*\\{' });

const GEOCODE_PATTERN = '^([0-9b-hjkmnp-zB-HJKMNP-Z]{1,9}|[0-3]{1,24})$';
const GEOMETRY_TYPES = [
  ...['Point', 'MultiPoint', 'LineString', 'MultiLineString', 'Polygon', 'MultiPolygon'],
  'GeometryCollection',
];

/** JSON Schema of a filter's `datetime`. With `periods`, days, months and years without a time are accepted. */
export const datetimeSchema = ({ periods = false } = {}) =>
  documented(
    { ...wordSchema, description: 'An instant or an interval, RFC 3339. It must not end before it starts' },
    { pattern: DATETIME_PATTERNS[periods ? 'periods' : 'none'] },
  );

/** JSON Schema of the filter in a body. */
export const filterBody = {
  ids: listSchema,
  collections: listSchema,
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
  geocode: documented(wordSchema, { pattern: GEOCODE_PATTERN }),
  recurse: { type: 'boolean', description: 'Also the cells inside of geocode, which it requires' },
  datetime: datetimeSchema(),
  minCloud: percentSchema,
  maxCloud: percentSchema,
  minCoverage: percentSchema,
  source: documented(wordSchema, { enum: tileSources }),
  platform: wordSchema,
  filter: documented(
    { description: 'CQL2 as JSON or as text' },
    {
      anyOf: [
        { type: 'object', required: ['op', 'args'] },
        { type: 'string', minLength: 1 },
      ],
    },
  ),
  'filter-lang': documented(wordSchema, { enum: FILTER_LANGUAGES }),
  'filter-crs': documented(wordSchema, { enum: [CRS84] }),
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
  ids: namesSchema,
  collections: namesSchema,
  bbox: documented(
    { ...textSchema, description: 'west,south,east,north in degrees; not together with intersects' },
    { pattern: BBOX_PATTERN },
  ),
  intersects: {
    ...jsonSchema,
    description: 'GeoJSON geometry in longitude and latitude; not together with bbox',
  },
  filter: documented(textSchema, { minLength: 1, description: 'CQL2 as JSON or as text' }),
  query: { ...jsonSchema, description: 'Comparisons by property: {"eo:cloud_cover": {"lte": 10}}' },
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

function parseList(parameter: string, given: string | string[]): string[] {
  const names = (typeof given === 'string' ? given.split(',') : given).map((name) => name.trim());
  if (names.includes('')) throw badList(parameter, String(given));
  return names;
}

const KIND_SCHEMAS: Record<PropertyKind, object> = {
  text: { type: 'string' },
  number: { type: 'number', minimum: 0 },
  time: { type: 'string', format: 'date-time' },
  geometry: { $ref: 'https://geojson.org/schema/Geometry.json' },
};

/**
 * The properties that filters can use, as JSON Schema: OGC API Features part 3, and the filter extension of STAC APIs. `url` is the URL of
 * the document. `names` has the known values of some properties.
 */
export function queryablesSchema(
  url: string,
  title: string,
  names: { collection?: string[]; platform?: string[] },
): object {
  const choices: Record<string, readonly string[] | undefined> = { ...names, source: tileSources };
  const properties = Object.entries(queryables).map(
    ([name, { kind, isPercent, title: label, description }]: [string, Property]) => {
      const choice = choices[name];
      const schema = { title: label, description, ...KIND_SCHEMAS[kind], ...(isPercent && { maximum: 100 }) };
      return [name, { ...schema, ...(choice?.length && { enum: choice }) }];
    },
  );
  return {
    $schema: 'https://json-schema.org/draft/2019-09/schema',
    $id: url,
    type: 'object',
    title,
    description: 'Names that the parameter `filter` accepts.',
    properties: Object.fromEntries(properties),
    additionalProperties: false,
  };
}

/**
 * Checks that the collections in a filter exist: otherwise a misspelt name would silently select nothing. Called for jobs on the tiles of a
 * filter; a search just returns nothing. Throws TW_QUERY_NO_COLLECTION.
 */
export async function requireCollections(
  storage: Pick<Storage, 'catalogue'>,
  { collections }: FilterParams = {},
): Promise<void> {
  if (collections === undefined) return;
  const known = (await toArray(storage.catalogue.collections.values())).map(({ id }) => id);
  const absent = parseList('collections', collections).filter((id) => !known.includes(id));
  if (absent.length > 0) throw noSuchCollections(absent, known.sort());
}

/** A key of the order of a search: the `sort` extension of STAC APIs. */
interface SortKey {
  field: string;
  direction?: 'asc' | 'desc';
}

const SORT_COLUMN_OF: Partial<Record<PropertyName, SortColumn>> = {
  datetime: 'start',
  id: 'id',
  collection: 'collection',
  created: 'created',
  'eo:cloud_cover': 'cloud',
  pixel_coverage: 'coverage',
  platform: 'platform',
  source: 'source',
  geocode: 'geocode',
};

const sortKeys = Object.keys(SORT_COLUMN_OF);
const sortables = sortKeys.join(', ');

const SORT_FIELD = `(properties\\.)?(${sortKeys.join('|')})`;
const SORT_FIELD_WITH_SIGN = `[-+ ]?${SORT_FIELD}`;

/** JSON Schema of `sortby` in a URL. */
export const sortbyQuery = documented(
  { type: 'string' },
  { pattern: `^${SORT_FIELD_WITH_SIGN}(,${SORT_FIELD_WITH_SIGN})*$` },
);

/** JSON Schema of `sortby` in a body. */
export const sortbyBody = documented(
  { description: '[{"field": "properties.eo:cloud_cover", "direction": "asc"}]' },
  {
    type: 'array',
    items: {
      type: 'object',
      required: ['field'],
      properties: {
        field: { type: 'string', pattern: `^${SORT_FIELD}$` },
        direction: { enum: ['asc', 'desc'] },
      },
    },
  },
);

/**
 * Parses `-datetime,+eo:cloud_cover`, or a list of fields with directions. Ties, and tiles without any keys, are ordered newest
 * first. Throws TW_QUERY_SORT.
 */
export function parseSortby(given: unknown): SortOrder {
  if (given === undefined) return [];
  const keys = typeof given === 'string' ? given.split(',').map(parseSortKey) : given;
  if (!Array.isArray(keys)) throw badSort(shownInMessage(given), sortables);
  const order = new Map<SortColumn, boolean>();
  for (const key of keys) {
    if (!isSortKey(key)) throw badSort(shownInMessage(key), sortables);
    const name = key.field.replace(/^properties\./, '');
    const column = Object.hasOwn(SORT_COLUMN_OF, name) ? SORT_COLUMN_OF[name as PropertyName] : undefined;
    if (column === undefined) throw badSort(key.field, sortables);
    if (!order.has(column)) order.set(column, key.direction === 'desc');
  }
  return [...order].map(([column, descending]) => ({ column, descending }));
}

function isSortKey(key: unknown): key is SortKey {
  if (typeof key !== 'object' || key === null) return false;
  const { field, direction = 'asc' } = key as Partial<SortKey>;
  return typeof field === 'string' && (direction === 'asc' || direction === 'desc');
}

const shownInMessage = (value: unknown) => JSON.stringify(value).slice(0, 60);

/** A plus sign in a URL is decoded as a space. */
function parseSortKey(text: string): SortKey {
  const [, sign, field] = /^([-+ ]?)(.*)$/s.exec(text) as unknown as [string, string, string];
  return { field: field.trim(), direction: sign === '-' ? 'desc' : 'asc' };
}

/** A short text that identifies a search. */
export function searchDigest(filter: Filter, order: SortOrder): string {
  return createHash('sha256')
    .update(JSON.stringify([filter, order]))
    .digest('base64url')
    .slice(0, 12);
}

/**
 * A paging token: a cursor in the order of tiles, as text that needs no escapes in a URL. It also has the digest of its search, because a
 * cursor is not valid in another one.
 */
export function encodePagingToken({ keys = [], start, collection, id }: Cursor, digest: string): string {
  return Buffer.from(JSON.stringify([digest, keys, start, collection, id])).toString('base64url');
}

/** Throws TW_QUERY_TOKEN, TW_QUERY_TOKEN_OTHER_SEARCH. */
export function decodePagingToken(token: string, digest: string, order: SortOrder): Cursor {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(token, 'base64url').toString());
  } catch (error) {
    throw badToken.because(error, token);
  }
  if (!Array.isArray(value)) throw badToken(token);
  const [itsDigest, keys, start, collection, id] = value as unknown[];
  if (typeof itsDigest !== 'string' || !Array.isArray(keys) || typeof start !== 'number')
    throw badToken(token);
  if (typeof collection !== 'string' || typeof id !== 'string') throw badToken(token);
  if (itsDigest !== digest) throw tokenOfOtherSearch();
  const cursor: Cursor = { start, collection, id };
  if (keys.length > 0) cursor.keys = keys as SortValue[];
  const fit = keys.length === 0 || keys.length === order.length;
  if (!fit || !keys.every((key, i) => fitsColumn(order[i]!.column, key))) throw badToken(token);
  if (encodePagingToken(cursor, digest) !== token) throw badToken(token);
  return cursor;
}

const NUMBER_COLUMNS = new Set(['start', 'end', 'cloud', 'coverage', 'created']);

function fitsColumn(column: string, key: unknown): boolean {
  return key === null || typeof key === (NUMBER_COLUMNS.has(column) ? 'number' : 'string');
}
