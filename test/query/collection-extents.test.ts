import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cellBbox, gridByName } from '../../src/geocode/index.js';
import { collectionExtents } from '../../src/query/index.js';
import { ColumnIndex } from '../../src/storage/index.js';
import { tiles } from './tiles.js';

test('the extent of a collection is that of its tiles, and no more', () => {
  fc.assert(
    fc.property(fc.uniqueArray(tiles, { maxLength: 40, selector: ({ id }) => id }), (records) => {
      const index = new ColumnIndex();
      index.load(records);
      const extents = collectionExtents(index);
      assert.deepEqual([...extents.keys()].sort(), [...new Set(records.map((one) => one.collection))].sort());
      for (const [id, { bbox, start, end }] of extents) {
        const own = records.filter(({ collection }) => collection === id);
        const boxes = own.map((one) => cellBbox(gridByName(one.grid), one.geocode));
        const side = (i: number) => boxes.map((box) => box[i]!);
        assert.deepEqual(bbox, [
          Math.min(...side(0)),
          Math.min(...side(1)),
          Math.max(...side(2)),
          Math.max(...side(3)),
        ]);
        assert.equal(start, Math.min(...own.map((one) => one.start)));
        assert.equal(end, Math.max(...own.map((one) => one.end)));
      }
    }),
    { seed: 42, numRuns: 100 },
  );
});
