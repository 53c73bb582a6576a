/** The lines of `tilewright check`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSummary } from '../../src/cli/commands/check.js';

test('reasons that differ only in their numbers are one line', () => {
  const place = (geocode: string, reason: string) => ({
    ...{
      collection: 's',
      grid: 'geohash' as const,
      geocode,
      model: `ndvi_s_g${geocode}`,
      status: 'unknown' as const,
    },
    ...{ reason, dates: 0, pixels: 0, seconds: 0 },
  });
  const places = [
    place('u1', 'the predictions of the model for 2023-05-01 are not finite'),
    place('u2', 'no date is newer than the training'),
    place('u3', 'the predictions of the model for 2024-06-02 are not finite'),
  ];
  assert.deepEqual(checkSummary({ fresh: 0, drifted: 0, unknown: 3, without: 0, places }), [
    'unknown: 2 places (such as u1): the predictions of the model for 2023-05-01 are not finite',
    'unknown: u2: no date is newer than the training',
    '3 places: 0 fresh, 0 drifted, 3 unknown',
  ]);
});
