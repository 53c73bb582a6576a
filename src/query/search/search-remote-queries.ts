/** Kinds of queries between nodes, with checks of questions and answers. */
import type { QueryKind } from '../../dht/index.js';
import {
  CURSOR_SCHEMA,
  checkEncodedTiles,
  SORT_COLUMNS,
  TILE_RECORD_SCHEMA,
  TIME_SCHEMA,
} from '../../storage/index.js';
import {
  type Check,
  COUNT,
  listOf,
  messageCheck,
  NUMBER,
  objectOf,
  TEXT,
  tupleOf,
} from '../../utils/json-schema.js';
import { aggregationQuery } from '../aggregate/index.js';
import { checkRemoteFilter } from '../filter/index.js';

const TEXTS = listOf(TEXT);
const nullable = (schema: object) => ({ anyOf: [{ type: 'null' }, schema] });

/** A check of an object with a filter; `check` is for its other members. */
export const withFilterCheck =
  (check: Check): Check =>
  (question) =>
    check(question) ?? checkRemoteFilter((question as { filter: unknown }).filter);

const checkFound = messageCheck(
  objectOf({
    found: objectOf({ places: listOf(CURSOR_SCHEMA), matched: COUNT, more: { type: 'boolean' } }),
    tiles: {},
  }),
);

export const SEARCH_QUERY: QueryKind = {
  name: 'search',
  question: withFilterCheck(
    messageCheck(
      objectOf(
        {
          filter: {},
          order: listOf(objectOf({ column: { enum: SORT_COLUMNS }, descending: { type: 'boolean' } })),
          // JSON has no infinity.
          limit: nullable(COUNT),
        },
        { after: CURSOR_SCHEMA },
      ),
    ),
  ),
  answer: (answer) => checkFound(answer) ?? checkEncodedTiles((answer as { tiles: unknown }).tiles),
};

export const TILE_QUERY: QueryKind = {
  name: 'tile',
  question: messageCheck(TEXT),
  answer: messageCheck(nullable(TILE_RECORD_SCHEMA)),
};

const countsBy = (key: object) => objectOf({ counts: listOf(tupleOf(key, COUNT)), overflow: COUNT });

/** Days since 1970, within the range of `Date`. */
const DAY_NUMBER = { type: 'integer', minimum: -1e8, maximum: 1e8 };

export const AGGREGATE_QUERY: QueryKind = {
  name: 'aggregate',
  question: withFilterCheck(
    messageCheck(
      objectOf({
        filter: {},
        params: objectOf({}, { ...aggregationQuery, aggregations: { anyOf: [TEXT, TEXTS] } }),
      }),
    ),
  ),
  answer: messageCheck(
    objectOf({
      total: COUNT,
      first: nullable(TIME_SCHEMA),
      last: nullable(TIME_SCHEMA),
      counts: {
        type: 'object',
        properties: { datetime_frequency: countsBy(DAY_NUMBER), grid_geohash_frequency: countsBy(COUNT) },
        additionalProperties: countsBy({ type: ['string', 'number'] }),
      },
    }),
  ),
};

/** Entries by collection id. */
const entriesOf = (schema: object) => listOf(tupleOf(TEXT, schema));

export const EXTENTS_QUERY: QueryKind = {
  name: 'extents',
  question: messageCheck({ type: 'null' }),
  answer: messageCheck(
    entriesOf(
      objectOf({
        bbox: { type: 'array', minItems: 4, maxItems: 4, items: NUMBER },
        start: TIME_SCHEMA,
        end: TIME_SCHEMA,
      }),
    ),
  ),
};

const SAMPLE = objectOf({
  platform: { type: ['string', 'null'] },
  source: TEXT,
  grid: TEXT,
  geocode: TEXT,
  start: TIME_SCHEMA,
  id: TEXT,
});

const RANGE = objectOf({ minimum: NUMBER, maximum: NUMBER });

export const SUMMARIES_QUERY: QueryKind = {
  name: 'contents',
  question: messageCheck({ type: 'null' }),
  answer: messageCheck(
    objectOf({
      contents: entriesOf(
        objectOf(
          { platforms: TEXTS, sources: TEXTS, coverage: RANGE, samples: listOf(SAMPLE) },
          { cloudCover: RANGE },
        ),
      ),
      samples: listOf(TILE_RECORD_SCHEMA),
    }),
  ),
};
