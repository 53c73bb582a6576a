/** The choice of the image of a cell that its texture is computed from. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clearestTile } from '../../../src/training/texture/process.js';

/** `day` of June 2024. */
const time = (day: number) => Date.UTC(2024, 5, day);
const image = (id: string, day: number, cloudCover: number | null, coverage = 100) => ({
  ...{ id, start: time(day), cloudCover, coverage },
});

for (const [what, images, chosen, near] of [
  ['5 % of cloud are clear', [image('a', 1, 0), image('b', 2, 5)], 'b'],
  ['more are not', [image('a', 1, 5), image('b', 2, 5.01)], 'a'],
  ['95 % of the cell are whole', [image('a', 1, 0, 100), image('b', 2, 0, 95)], 'b'],
  ['less are not', [image('a', 1, 5, 95), image('b', 2, 0, 94.99)], 'a'],
  ['both are asked for', [image('a', 1, 5, 95), image('b', 2, 6, 100), image('c', 3, 0, 90)], 'a'],
  ['an unknown cloud cover comes last', [image('a', 1, 90), image('b', 2, null)], 'a'],
  ['but before nothing but cloud', [image('a', 1, 100), image('b', 2, null)], 'b'],
  ['of unknown ones the newest', [image('a', 1, null), image('b', 2, null)], 'b'],
  ['of clear ones the newest, not the clearest', [image('b', 3, 4), image('a', 2, 0), image('c', 1, 0)], 'b'],
  ['or the nearest, after', [image('a', 1, 0), image('b', 10, 0), image('c', 20, 0)], 'b', time(8)],
  ['or the nearest, before', [image('a', 1, 0), image('b', 10, 0), image('c', 20, 0)], 'b', time(14)],
  ['the nearest of the clear ones alone', [image('a', 1, 0), image('b', 10, 30)], 'a', time(10)],
  ['of equally near ones the first by its id', [image('b', 1, 0), image('a', 3, 0)], 'a', time(2)],
  ['of equally new ones the first by its id', [image('b', 1, 0), image('a', 1, 0)], 'a'],
  ['where none is clear, the least cloudy', [image('a', 1, 20), image('b', 2, 30), image('c', 3, 40)], 'a'],
  [
    'where none is whole, the one that has the most of it',
    [image('a', 1, 0, 60), image('b', 2, 0, 80), image('c', 3, 0, 70)],
    'b',
  ],
  [
    'where none is either, the one with the most pixels without cloud',
    // 64, 63 and 60 % of the cell.
    [image('a', 1, 20, 80), image('b', 2, 10, 70), image('c', 3, 40, 100)],
    'a',
  ],
  ['as many of them: the newest', [image('a', 1, 20, 80), image('b', 2, 36, 100), image('c', 3, 90)], 'b'],
  ['as many of them: the nearest', [image('a', 1, 20, 80), image('b', 2, 36, 100)], 'a', time(1)],
  ['unknown cloud in a part of the cell', [image('a', 1, 50), image('b', 2, null, 60)], 'a'],
  ['of unknown ones the one that has the most', [image('a', 1, null, 80), image('b', 2, null, 60)], 'a'],
  ['an image alone', [image('a', 1, 100, 1)], 'a'],
] as const)
  test(`${what}: ${chosen}`, () => {
    for (const given of [[...images], images.toReversed()])
      assert.equal(clearestTile(given, near).id, chosen);
  });
