/** The question for a share of a series, with checks of what other nodes send. */
import type { QuestionKind } from '../../dht/index.js';
import { SENT_ERROR } from '../../errors.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT, tupleOf } from '../../json-schema.js';
import { withFilter } from '../../query/index.js';
import { POSITION, TIME } from '../../storage/index.js';

/** A statistic of values that an expression made infinite is null in JSON. */
const STATISTIC = { type: ['number', 'null'] };

const POINT = tupleOf(NUMBER, NUMBER);
/** JSON Schema of a `Region`. */
export const REGION = {
  anyOf: [
    objectOf({ kind: { enum: ['point'] }, point: POINT }),
    objectOf({
      kind: { enum: ['area'] },
      bbox: tupleOf(NUMBER, NUMBER, NUMBER, NUMBER),
      sides: listOf(objectOf({ south: POINT, north: POINT })),
    }),
  ],
};

const PLACE_VALUES = objectOf({
  key: TEXT,
  valid: COUNT,
  mean: STATISTIC,
  squares: STATISTIC,
  min: STATISTIC,
  max: STATISTIC,
});

const DATE = objectOf(
  {
    key: TEXT,
    start: TIME,
    end: TIME,
    collection: TEXT,
    scenes: listOf(TEXT),
    places: listOf(PLACE_VALUES),
  },
  {
    median: STATISTIC,
    sketch: objectOf({ count: COUNT, step: COUNT, values: listOf(STATISTIC) }),
    within: objectOf({ count: COUNT, below: COUNT, values: listOf(tupleOf(STATISTIC, COUNT)) }),
  },
);

export const SERIES: QuestionKind = {
  name: 'series',
  question: withFilter(
    messageCheck(
      objectOf(
        { region: REGION, expression: TEXT, filter: {} },
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
      { lack: objectOf({ tile: POSITION, error: SENT_ERROR }) },
    ),
  ),
  // It reads pixels.
  patience: 60_000,
};
