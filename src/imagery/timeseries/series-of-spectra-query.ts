/** The query for the spectra of a zone from one owner, with checks of the messages of other nodes. */
import type { QueryKind } from '../../dht/index.js';
import { withFilterCheck } from '../../query/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT, tupleOf } from '../../utils/json-schema.js';
import { DATE_MEMBERS, ZONE_SCHEMA } from './series-query.js';

const BAND = objectOf({ name: TEXT, wavelength: NUMBER }, { fwhm: NUMBER, good: { type: 'boolean' } });

const SUMS = objectOf({
  key: TEXT,
  valid: COUNT,
  counts: listOf(COUNT),
  means: listOf(NUMBER),
  squares: listOf(NUMBER),
});

const DATE = objectOf({
  ...DATE_MEMBERS,
  bands: listOf(BAND),
  pixels: listOf(tupleOf(TEXT, COUNT)),
  places: listOf(SUMS),
});

export const SPECTRA_QUERY: QueryKind = {
  name: 'spectra',
  question: withFilterCheck(messageCheck(objectOf({ region: ZONE_SCHEMA, filter: {} }))),
  answer: messageCheck(objectOf({ matched: COUNT, skipped: COUNT, dates: listOf(DATE) })),
  // Owners read pixels.
  timeoutMs: 60_000,
};
