/** The query that asks an owner for its part of a series, and the validation of the messages. */
import type { QueryKind } from '../../dht/index.js';
import { ERROR_DOCUMENT_SCHEMA } from '../../errors.js';
import { withFilterCheck } from '../../query/index.js';
import { CURSOR_SCHEMA, TIME_SCHEMA } from '../../storage/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT, tupleOf } from '../../utils/json-schema.js';

/** A statistic of infinite values is null in JSON. */
const STATISTIC = { type: ['number', 'null'] };

const POINT = tupleOf(NUMBER, NUMBER);
/** JSON Schema of a `Zone`. */
export const ZONE_SCHEMA = {
  anyOf: [
    objectOf({ kind: { enum: ['point'] }, point: POINT }),
    objectOf({
      kind: { enum: ['area'] },
      bbox: tupleOf(NUMBER, NUMBER, NUMBER, NUMBER),
      sides: listOf(objectOf({ south: POINT, north: POINT })),
    }),
  ],
};

const ZONE_STATISTICS_SCHEMA = objectOf({
  key: TEXT,
  valid: COUNT,
  mean: STATISTIC,
  squares: STATISTIC,
  min: STATISTIC,
  max: STATISTIC,
});

/** Members of the dates of series and spectra. */
export const DATE_MEMBERS = {
  key: TEXT,
  start: TIME_SCHEMA,
  end: TIME_SCHEMA,
  collection: TEXT,
  scenes: listOf(TEXT),
};

const DATE = objectOf(
  { ...DATE_MEMBERS, places: listOf(ZONE_STATISTICS_SCHEMA) },
  {
    median: STATISTIC,
    sketch: objectOf({ count: COUNT, step: COUNT, values: listOf(STATISTIC) }),
    within: objectOf({ count: COUNT, below: COUNT, values: listOf(tupleOf(STATISTIC, COUNT)) }),
  },
);

export const SERIES_QUERY: QueryKind = {
  name: 'series',
  question: withFilterCheck(
    messageCheck(
      objectOf(
        { region: ZONE_SCHEMA, expression: TEXT, filter: {} },
        { medians: listOf(tupleOf(TEXT, tupleOf(STATISTIC, STATISTIC))) },
      ),
    ),
  ),
  answer: messageCheck(
    objectOf(
      {
        matched: COUNT,
        skipped: COUNT,
        pixels: listOf(tupleOf(TEXT, COUNT)),
        dates: listOf(DATE),
      },
      { lack: objectOf({ tile: CURSOR_SCHEMA, error: ERROR_DOCUMENT_SCHEMA }) },
    ),
  ),
  // Long, because owners read pixels.
  timeoutMs: 60_000,
};
