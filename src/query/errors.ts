/** Errors of queries. Each message has the parameter, the given value and a valid example. */
import { defineError } from '../errors.js';

export const badBbox = defineError(
  'TW_QUERY_BBOX',
  400,
  'A bounding box is not four numbers west,south,east,north in degrees (or six with heights). Correct the box.',
  (given: string, why: string) =>
    `bbox "${given}" ${why}: use west,south,east,north in degrees, for example -122.6,37.6,-122.3,37.9`,
);

export const badDatetime = defineError(
  'TW_QUERY_DATETIME',
  400,
  'A datetime is not in one of [the forms of times](search.md#times). Correct it; times need a zone.',
  (given: string, why: string, example?: string) =>
    `datetime "${given}" ${why}: ${
      example === undefined
        ? 'use an instant or an interval, for example 2018-07-10T00:00:00Z/2018-07-31T23:59:59Z or 2018-07-10T00:00:00Z/..'
        : `write ${example}`
    }`,
);

export const badInstant = defineError(
  'TW_QUERY_INSTANT',
  400,
  'The value of a parameter is not an RFC 3339 time. Correct it; times need a zone.',
  (parameter: string, given: string) =>
    `${parameter} "${given}" is not an RFC 3339 time with a zone: use one such as 2024-06-01T00:00:00Z`,
);

export const badPercent = defineError(
  'TW_QUERY_PERCENT',
  400,
  'A percentage is not a number from 0 to 100. Correct it.',
  (parameter: string, given: string) =>
    `${parameter} "${given}" is not a percentage: use a number from 0 to 100, for example 20`,
);

export const badGeocode = defineError(
  'TW_QUERY_GEOCODE',
  400,
  'A geocode is not a cell of any grid, or is missing. Use a geohash or a quadkey.',
  (given: string | undefined) =>
    given === undefined
      ? '--recurse needs --geocode, the cell whose smaller cells are included'
      : `geocode "${given}" is not a cell: use a geohash of 1 to 9 characters, for example 9q8yy, or a quadkey of 1 to 24 digits, for example 0230102033`,
);

export const badSource = defineError(
  'TW_QUERY_SOURCE',
  400,
  'A tile source is not known. Use one of those listed.',
  (given: string, allowed: string) =>
    `source "${given}" is not known: use one of ${allowed}, for example raw`,
);

export const badList = defineError(
  'TW_QUERY_LIST',
  400,
  'A list of names is empty or contains an empty name. Separate names by single commas.',
  (parameter: string, given: string) =>
    `${parameter} "${given}" has an empty name: separate names by single commas, for example naip,nlcd`,
);

export const badToken = defineError(
  'TW_QUERY_TOKEN',
  400,
  'A paging token is not one that a search has returned. Start again without a token.',
  (given: string) =>
    `token "${given}" does not come from a search: use the token of the link "next" unchanged, or start again without one`,
);

export const conflictingArea = defineError(
  'TW_QUERY_BBOX_AND_INTERSECTS',
  400,
  'A search has both `bbox` and `intersects`. Use one of them, and `filter` for the other.',
  () => 'the search has both bbox and intersects: use one of them, and S_INTERSECTS in filter for the other',
);

export const badGeometry = defineError(
  'TW_QUERY_GEOMETRY',
  400,
  'A geometry is not a GeoJSON or WKT geometry in degrees. Correct it.',
  (why: string) =>
    `the geometry cannot be used: ${why}. Use a GeoJSON geometry (or WKT in CQL2 text) in degrees, for example {"type": "Point", "coordinates": [-122.4, 37.8]}`,
);

export const badCql2Text = defineError(
  'TW_QUERY_CQL2_SYNTAX',
  400,
  'A filter in CQL2 text has a syntax error. The message has the position, counted from 1, and what is expected there.',
  (position: number, expected: string, found: string) =>
    `the filter cannot be read at character ${position}: expected ${expected}, found ${found}`,
);

export const badCql2 = defineError(
  'TW_QUERY_CQL2',
  400,
  'A filter is not valid CQL2: an operator is unknown, or has invalid arguments. The message says where.',
  (where: string, why: string) => `the filter cannot be used${where && ` (${where})`}: ${why}`,
);

export const unsupportedCql2 = defineError(
  'TW_QUERY_CQL2_UNSUPPORTED',
  400,
  'A filter uses a part of CQL2 that is not supported, such as an array, or a function other than CASEI and ACCENTI.',
  (where: string, what: string) =>
    `the filter uses ${what}${where && ` (${where})`}, which is not supported: compare properties, literals, and CASEI, ACCENTI or arithmetic of these`,
);

export const unknownProperty = defineError(
  'TW_QUERY_UNKNOWN_PROPERTY',
  400,
  'A filter or an order names a property that Items do not have. Use a property in /queryables.',
  (name: string, where: string, known: string) =>
    `there is no property "${name}"${where && ` (${where})`}: use one of ${known}`,
);

export const notQueryable = defineError(
  'TW_QUERY_NOT_QUERYABLE',
  400,
  'A filter names a property of Items that cannot be queried. Use a property in /queryables.',
  (name: string, where: string, known: string) =>
    `Items have "${name}", but it cannot be queried${where && ` (${where})`}: use one of ${known}`,
);

export const filterTooComplex = defineError(
  'TW_QUERY_TOO_COMPLEX',
  400,
  'A filter has more conditions, points, values, characters or levels than allowed. Simplify it, or split the search.',
  (what: string, count: number, most: number) =>
    `the filter has ${count} ${what}, more than ${most}: simplify it, or split the search`,
);

export const badFilterLanguage = defineError(
  'TW_QUERY_FILTER_LANG',
  400,
  '`filter-lang` or `filter-crs` is not a supported language or reference system.',
  (parameter: string, given: string, allowed: string) =>
    `${parameter} "${given}" is not known: omit it, or use ${allowed}`,
);

export const badQueryExtension = defineError(
  'TW_QUERY_QUERY',
  400,
  'The member `query` is not an object of properties, each with an object of comparisons.',
  (why: string) => `query cannot be used: ${why}. For example {"eo:cloud_cover": {"lte": 10}}`,
);

export const badSort = defineError(
  'TW_QUERY_SORT',
  400,
  'An order names a property that cannot be sorted by, or has an invalid form.',
  (given: string, known: string) =>
    `sortby "${given}" cannot be used: use one or more of ${known}, with - before a name for descending order, for example -datetime,+eo:cloud_cover`,
);

export const tokenOfOtherSearch = defineError(
  'TW_QUERY_TOKEN_OTHER_SEARCH',
  400,
  'A paging token comes from a search with another filter or another order. Start again without a token.',
  () =>
    'the token comes from a search with another filter or order: use it with the parameters of that search, or start again without a token',
);

export const badAggregation = defineError(
  'TW_QUERY_AGGREGATION',
  400,
  'An aggregation is not known, or its parameter is out of range. /aggregations lists them.',
  (given: string, allowed: string) => `${given} cannot be used: use ${allowed}`,
);

export const queryTooCostly = defineError(
  'TW_QUERY_TOO_COSTLY',
  400,
  'The filter of a search takes too much work for the number of tiles. Restrict its area or ids, use fewer or simpler conditions, or split it.',
  (times: number) =>
    `the search would take ${times < 10 ? times.toFixed(1) : Math.round(times)} times the work that is allowed: restrict its area, use fewer or simpler conditions, or split it`,
);

export const tooManyCells = defineError(
  'TW_QUERY_TOO_MANY_CELLS',
  400,
  'An aggregation would count the tiles of too many cells. Use a smaller `grid_geohash_frequency_precision`, or restrict the area.',
  (precision: number, most: number) =>
    `the tiles lie in more than ${most} cells of precision ${precision}: use a smaller grid_geohash_frequency_precision, or restrict the area`,
);

export const slotsUnanswered = defineError(
  'TW_QUERY_UNANSWERED',
  503,
  'No node of the cluster answers for some of the required tiles. Try again in a moment; `/cluster/nodes` shows which nodes are down.',
  (slots: number) => `no node answers for ${slots} of the required slots: try again in a moment`,
);

export const noSuchCollections = defineError(
  'TW_QUERY_NO_COLLECTION',
  404,
  'The filter of a job names a collection that does not exist. The message lists all collections.',
  (absent: string[], known: string[]) =>
    `there is no collection ${absent.join(', ')}; there ${known.length === 1 ? 'is' : 'are'} ${known.length > 0 ? known.join(', ') : 'none'}`,
);
