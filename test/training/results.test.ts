import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasonsOf } from '../../src/training/index.js';

test('places without a model are told by their reasons, whatever the numbers in them', () => {
  const few = (geocode: string, patches: number) => ({
    geocode,
    model: 'ndvi',
    reason: `${patches} usable patches of 16x16 px, at least 40 are needed (coverage ${patches} %, cloud 1 %)`,
  });
  const skipped = [
    few('dj3y3', 9),
    few('dj3y4', 12),
    few('dj3y5', 3),
    { geocode: 'dj3y6', model: 'ndvi', reason: 'no dates' },
  ];
  const failed = ['a', 'b'].map((geocode) => ({
    geocode,
    model: 'ndvi',
    code: 'TW_X',
    message: `${geocode}.tif is cut off`,
  }));
  assert.deepEqual(reasonsOf({ skipped, failed }, ['ndvi']), [
    '3 places, such as dj3y3: 9 usable patches of 16x16 px, at least 40 are needed (coverage 9 %, cloud 1 %)',
    '2 places, such as a: a.tif is cut off [TW_X]',
    'dj3y6: no dates',
  ]);
  const other = { geocode: 'dj3y7', model: 'ndvi', reason: 'no bands' };
  assert.equal(reasonsOf({ skipped: [...skipped, other], failed }, ['ndvi']).at(-1), '1 other place');

  const both = [...skipped.slice(0, 3), { ...other, model: 'ndmi' }, { ...few('dj3y3', 9), model: 'ndmi' }];
  assert.deepEqual(reasonsOf({ skipped: both, failed }, ['ndvi', 'ndmi']), [
    '3 places, such as dj3y3 (ndvi): 9 usable patches of 16x16 px, at least 40 are needed (coverage 9 %, cloud 1 %)',
    '2 places, such as a (ndvi): a.tif is cut off [TW_X]',
    'dj3y7 (ndmi): no bands',
    '1 other model',
  ]);
});
