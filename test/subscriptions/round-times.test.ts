/** When rounds take place, and which dates they search. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  EVERY_PATTERN,
  formatEvery,
  LOOKBACK_MS,
  nextRunTime,
  parseEvery,
  roundDatetime,
} from '../../src/subscriptions/rounds.js';

const MINUTE = 60_000;
const DAY = 86_400_000;

const times = fc.integer({ min: 0, max: 4e12 });
const intervals = fc.integer({ min: 1, max: 30 * 24 * 60 }).map((minutes) => minutes * MINUTE);

test('the next round is the first one on the grid that is after now, however many were missed', () => {
  fc.assert(
    fc.property(times, intervals, fc.integer({ min: 0, max: 5e11 }), (planned, every, late) => {
      const now = planned + late;
      const next = nextRunTime(planned, every, now);
      assert.ok(next > now);
      assert.ok(next <= now + every);
      assert.equal((next - planned) % every, 0);
    }),
    { seed: 1 },
  );
});

test('an interval keeps its length as text', () => {
  fc.assert(
    fc.property(intervals, (every) => {
      assert.equal(parseEvery(formatEvery(every)), every);
    }),
    { seed: 2 },
  );
  assert.equal(formatEvery(90 * MINUTE), '90m');
  assert.equal(formatEvery(DAY), '1d');
  const isAccepted = (text: string) => {
    try {
      return parseEvery(text) > 0;
    } catch {
      return false;
    }
  };
  for (const unit of ['d', 'h', 'm', 's'])
    for (let count = 0; count < 50_000; count++)
      assert.equal(new RegExp(EVERY_PATTERN).test(count + unit), isAccepted(count + unit), count + unit);
  for (const text of ['0m', '59s', '31d', '43201m', '1.5h', '-1h', '6', 'h', '6h ', '1e3m', ''])
    assert.throws(() => parseEvery(text), { code: 'TW_SUBSCRIPTION_EVERY' }, text);
});

test('only a search with an open end is shortened, and only after a success', () => {
  const succeeded = Date.parse('2024-09-01T00:00:00Z');
  const after = (time: number) => `${new Date(time).toISOString().replace('.000Z', 'Z')}/..`;
  const cases: [
    datetime: string | undefined,
    succeededAt: number | undefined,
    expected: string | undefined,
  ][] = [
    [undefined, undefined, undefined],
    [undefined, succeeded, after(succeeded - LOOKBACK_MS)],
    ['2024-05/..', undefined, '2024-05/..'],
    ['2024-05/..', succeeded, after(succeeded - LOOKBACK_MS)],
    ['2024-05/', succeeded, after(succeeded - LOOKBACK_MS)],
    ['2024-08-20/..', succeeded, '2024-08-20T00:00:00Z/..'],
    ['2024-05/2024-08', succeeded, '2024-05/2024-08'],
    ['../2024-08', succeeded, '../2024-08'],
    ['2024-05', succeeded, '2024-05'],
  ];
  for (const [datetime, succeededAt, expected] of cases)
    assert.equal(roundDatetime(datetime, succeededAt), expected, `${datetime}, ${succeededAt}`);
});
