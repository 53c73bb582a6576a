/** The question for a share of the spectra of a place, with checks of what other nodes send. */
import type { QuestionKind } from '../../dht/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT, tupleOf } from '../../json-schema.js';
import { withFilter } from '../../query/index.js';
import { TIME } from '../../storage/index.js';
import { REGION } from './series-query.js';

const BAND = objectOf({ name: TEXT, wavelength: NUMBER }, { fwhm: NUMBER, good: { type: 'boolean' } });

const SUMS = objectOf({
  key: TEXT,
  valid: COUNT,
  counts: listOf(COUNT),
  means: listOf(NUMBER),
  squares: listOf(NUMBER),
});

const DATE = objectOf({
  key: TEXT,
  start: TIME,
  end: TIME,
  collection: TEXT,
  scenes: listOf(TEXT),
  bands: listOf(BAND),
  pixels: listOf(tupleOf(TEXT, COUNT)),
  places: listOf(SUMS),
});

export const SPECTRA: QuestionKind = {
  name: 'spectra',
  question: withFilter(messageCheck(objectOf({ region: REGION, filter: {} }))),
  answer: messageCheck(objectOf({ matched: COUNT, skipped: COUNT, dates: listOf(DATE) })),
  // It reads pixels.
  patience: 60_000,
};
