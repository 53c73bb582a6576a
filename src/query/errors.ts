/** Errors of this part. Each names the parameter, what was given and what is right. */
import { defineError } from '../errors.js';

export const badBbox = defineError(
  'TW_QUERY_BBOX',
  400,
  'A bounding box is not four numbers west,south,east,north in degrees (or six with heights). Correct the box.',
  (given: string, why: string) =>
    `bbox "${given}" ${why}: give west,south,east,north in degrees, for example -122.6,37.6,-122.3,37.9`,
);

export const badDatetime = defineError(
  'TW_QUERY_DATETIME',
  400,
  'A datetime is not in one of [the forms of times](search.md#times). Correct it; times need a zone.',
  (given: string, why: string, example?: string) =>
    `datetime "${given}" ${why}: ${
      example === undefined
        ? 'give an instant or an interval, for example 2018-07-10T00:00:00Z/2018-07-31T23:59:59Z or 2018-07-10T00:00:00Z/..'
        : `write ${example}`
    }`,
);

export const badInstant = defineError(
  'TW_QUERY_INSTANT',
  400,
  'A parameter that is one moment is not an RFC 3339 time. Correct it; times need a zone.',
  (parameter: string, given: string) =>
    `${parameter} "${given}" is not an RFC 3339 time with a zone: give one such as 2024-06-01T00:00:00Z`,
);

export const badPercent = defineError(
  'TW_QUERY_PERCENT',
  400,
  'A percentage is not a number from 0 to 100. Correct it.',
  (parameter: string, given: string) =>
    `${parameter} "${given}" is not a percentage: give a number from 0 to 100, for example 20`,
);

export const badGeocode = defineError(
  'TW_QUERY_GEOCODE',
  400,
  'A geocode names no cell of any grid, or one is missing. Give a geohash or a quadkey.',
  (given: string | undefined) =>
    given === undefined
      ? '--recurse needs --geocode, the cell below which tiles are meant'
      : `geocode "${given}" names no cell: give a geohash of 1 to 9 characters, for example 9q8yy, or a quadkey of 1 to 24 digits, for example 0230102033`,
);

export const badSource = defineError(
  'TW_QUERY_SOURCE',
  400,
  'A tile source is not known. Use one of those listed.',
  (given: string, allowed: string) =>
    `source "${given}" is not known: give one of ${allowed}, for example raw`,
);

export const badList = defineError(
  'TW_QUERY_LIST',
  400,
  'A list of names is empty or has an empty name in it. Separate names by single commas.',
  (parameter: string, given: string) =>
    `${parameter} "${given}" has an empty name: give names with commas between them, for example naip,nlcd`,
);

export const badToken = defineError(
  'TW_QUERY_TOKEN',
  400,
  'A paging token is not one that a search has returned. Start again without a token.',
  (given: string) =>
    `token "${given}" does not come from a search: use the token of the link "next" as it is, or start again without one`,
);

export const conflictingArea = defineError(
  'TW_QUERY_BBOX_AND_INTERSECTS',
  400,
  'A search has both `bbox` and `intersects`. Give one of them, or say the other in `filter`.',
  () => 'bbox and intersects are given both: give one of them, or S_INTERSECTS in filter for the other',
);

export const badGeometry = defineError(
  'TW_QUERY_GEOMETRY',
  400,
  'A geometry is no GeoJSON or WKT geometry in degrees. Correct it.',
  (why: string) =>
    `the geometry cannot be used: ${why}. Give a GeoJSON geometry (or WKT in CQL2 text) in degrees, for example {"type": "Point", "coordinates": [-122.4, 37.8]}`,
);

export const badCql2Text = defineError(
  'TW_QUERY_CQL2_SYNTAX',
  400,
  'A filter in CQL2 text breaks the grammar. The message names the position, counted from 1, and what is expected there.',
  (position: number, expected: string, found: string) =>
    `the filter cannot be read at character ${position}: expected ${expected}, found ${found}`,
);

export const badCql2 = defineError(
  'TW_QUERY_CQL2',
  400,
  'A filter is no CQL2: an operator is unknown, or has arguments that it does not take. The message says where.',
  (where: string, why: string) => `the filter cannot be used${where && ` (${where})`}: ${why}`,
);

export const unsupportedCql2 = defineError(
  'TW_QUERY_CQL2_UNSUPPORTED',
  400,
  'A filter uses a part of CQL2 that this server does not offer, such as an array, or a function other than CASEI and ACCENTI.',
  (where: string, what: string) =>
    `the filter uses ${what}${where && ` (${where})`}, which is not offered here: compare properties, literals, and CASEI, ACCENTI or arithmetic of these`,
);

export const unknownProperty = defineError(
  'TW_QUERY_UNKNOWN_PROPERTY',
  400,
  'A filter or an order names a property that Items do not have. Use one of those that /queryables lists.',
  (name: string, where: string, known: string) =>
    `there is no property "${name}"${where && ` (${where})`}: use one of ${known}`,
);

export const notQueryable = defineError(
  'TW_QUERY_NOT_QUERYABLE',
  400,
  'A filter names a property that Items have but that searches cannot ask for. Use one of those that /queryables lists.',
  (name: string, where: string, known: string) =>
    `Items have "${name}", but searches cannot ask for it${where && ` (${where})`}: use one of ${known}`,
);

export const filterTooComplex = defineError(
  'TW_QUERY_TOO_COMPLEX',
  400,
  'A filter has more conditions, points, values, characters or levels than a server answers. Ask in parts, or simplify it.',
  (what: string, count: number, most: number) =>
    `the filter has ${count} ${what}, more than ${most}: simplify it, or ask in parts`,
);

export const badFilterLanguage = defineError(
  'TW_QUERY_FILTER_LANG',
  400,
  '`filter-lang` or `filter-crs` names a language or reference system that filters cannot be in.',
  (parameter: string, given: string, allowed: string) =>
    `${parameter} "${given}" is not known: leave it out, or give ${allowed}`,
);

export const badQueryExtension = defineError(
  'TW_QUERY_QUERY',
  400,
  'The member `query` is not an object of properties, each with an object of comparisons.',
  (why: string) => `query cannot be used: ${why}. Give for example {"eo:cloud_cover": {"lte": 10}}`,
);

export const badSort = defineError(
  'TW_QUERY_SORT',
  400,
  'An order names a property that searches cannot be ordered by, or has a wrong form.',
  (given: string, known: string) =>
    `sortby "${given}" cannot be used: give one or more of ${known}, with - before it for descending, for example -datetime,+eo:cloud_cover`,
);

export const tokenOfOtherSearch = defineError(
  'TW_QUERY_TOKEN_OTHER_SEARCH',
  400,
  'A paging token comes from a search with another filter or another order. Start again without a token.',
  () =>
    'the token comes from a search with another filter or order: go on with the parameters that it came from, or start again without a token',
);

export const badAggregation = defineError(
  'TW_QUERY_AGGREGATION',
  400,
  'An aggregation is not known, or its parameter is out of range. /aggregations lists them.',
  (given: string, allowed: string) => `${given} cannot be used: give ${allowed}`,
);

export const queryTimedOut = defineError(
  'TW_QUERY_TOO_SLOW',
  400,
  'A search was given up because its filter takes too long. Narrow it by place, time or collection, or ask in parts.',
  (seconds: number) =>
    `the search was given up after ${seconds} s: narrow it by place, time or collection, or ask in parts`,
);

export const slotsUnanswered = defineError(
  'TW_QUERY_UNANSWERED',
  503,
  'No node of the cluster answers for tiles that the answer needs. Ask again in a moment; `/cluster/nodes` shows which nodes are away.',
  (slots: number) =>
    `no node answers for ${slots} of the slots that hold what is asked for: ask again in a moment`,
);

export const noSuchCollections = defineError(
  'TW_QUERY_NO_COLLECTION',
  404,
  'The filter of a job names a collection that does not exist. The message lists those that do.',
  (absent: string[], known: string[]) =>
    `there is no collection ${absent.join(', ')}; there ${known.length === 1 ? 'is' : 'are'} ${known.length > 0 ? known.join(', ') : 'none'}`,
);
