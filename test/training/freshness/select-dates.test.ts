/** The dates from which a place that has drifted is trained again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { datesSinceChange } from '../../../src/training/train-stale.js';

test('all dates since the change are used, and eight times as many clear older ones, spread over their time', () => {
  const tiles = Array.from({ length: 40 }, (_, start) => ({ start, cloudCover: start % 2 ? 60 : 0 }));
  const chosen = (changed: number) => datesSinceChange(tiles, changed).map(({ start }) => start);
  assert.deepEqual(chosen(39), [0, 4, 10, 14, 20, 24, 30, 34, 39]);
  assert.deepEqual(chosen(0), [...tiles.keys()]);
  assert.deepEqual(chosen(3), [0, 2, ...Array.from({ length: 37 }, (_, i) => i + 3)]);
});
