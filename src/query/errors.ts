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
  'A datetime is not an RFC 3339 instant or an interval of two. Correct it; times need a zone.',
  (given: string, why: string) =>
    `datetime "${given}" ${why}: give an instant or an interval, for example 2018-07-10T00:00:00Z/2018-07-31T23:59:59Z or 2018-07-10T00:00:00Z/..`,
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
  (given: string) =>
    `geocode "${given}" names no cell: give a geohash of 1 to 9 characters, for example 9q8yy, or a quadkey of 1 to 24 digits, for example 0230102033`,
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

export const badLimit = defineError(
  'TW_QUERY_LIMIT',
  400,
  'A limit is not a whole number of at least 1. Correct it.',
  (given: string, max: number) =>
    `limit "${given}" is not a number of tiles: give a whole number from 1 to ${max}, for example 100`,
);

export const badToken = defineError(
  'TW_QUERY_TOKEN',
  400,
  'A paging token is not one that a search has returned. Start again without a token.',
  (given: string) =>
    `token "${given}" does not come from a search: use the token of the link "next" as it is, or start again without one`,
);
