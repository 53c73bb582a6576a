import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { collectionExtents, collectionSummaries } from '../../src/query/index.js';
import { ColumnIndex } from '../../src/storage/index.js';
import { tiles } from './tiles.js';

async function answers(index: ColumnIndex) {
  const contents = await collectionSummaries(index);
  for (const { samples } of contents.values()) assert.ok(samples.every(({ id }) => index.has(id)));
  return { extents: await collectionExtents(index), contents };
}

/** The same results from a new index. */
function freshAnswers(index: ColumnIndex) {
  const copy = new ColumnIndex();
  copy.restore(index.images());
  return answers(copy);
}

test('extents and summaries are computed once, also for concurrent callers, and again after every change', async () => {
  const change = fc.tuple(
    fc.constantFrom('add', 'remove', 'merge', 'load'),
    fc.array(tiles, { maxLength: 4 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), async (changes) => {
      const index = new ColumnIndex();
      const added: string[] = [];
      for (const [kind, records] of changes) {
        if (kind === 'add') index.add(records);
        else if (kind === 'load') index.load(records);
        else if (kind === 'merge') index.compactTail();
        else index.remove(added.splice(0, 2));
        if (kind === 'add' || kind === 'load') added.push(...records.map(({ id }) => id));
        const [extents, contents] = [collectionExtents(index), collectionSummaries(index)];
        const isSame = () => collectionExtents(index) === extents && collectionSummaries(index) === contents;
        assert.ok(isSame(), 'before they are computed');
        assert.deepEqual(await answers(index), await freshAnswers(index));
        assert.ok(isSame(), 'afterwards');
      }
    }),
    { seed: 42, numRuns: 200 },
  );
});
