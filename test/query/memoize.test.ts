import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { collectionExtents, collectionSummaries } from '../../src/query/index.js';
import { ColumnIndex } from '../../src/storage/index.js';
import { tiles } from './tiles.js';

function answers(index: ColumnIndex) {
  const contents = collectionSummaries(index);
  for (const { samples } of contents.values()) assert.ok(samples.every(({ id }) => index.has(id)));
  return { extents: collectionExtents(index), contents };
}

/** The same results from a new index. */
function freshAnswers(index: ColumnIndex) {
  const copy = new ColumnIndex();
  copy.restore(index.images());
  return answers(copy);
}

test('extents and summaries are computed once, and again after every change', () => {
  const change = fc.tuple(
    fc.constantFrom('add', 'remove', 'merge', 'load'),
    fc.array(tiles, { maxLength: 4 }),
  );
  fc.assert(
    fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
      const index = new ColumnIndex();
      const added: string[] = [];
      for (const [kind, records] of changes) {
        if (kind === 'add') index.add(records);
        else if (kind === 'load') index.load(records);
        else if (kind === 'merge') index.compactTail();
        else index.remove(added.splice(0, 2));
        if (kind === 'add' || kind === 'load') added.push(...records.map(({ id }) => id));
        const [extents, contents] = [collectionExtents(index), collectionSummaries(index)];
        assert.deepEqual(answers(index), freshAnswers(index));
        assert.equal(collectionExtents(index), extents);
        assert.equal(collectionSummaries(index), contents);
      }
    }),
    { seed: 42, numRuns: 200 },
  );
});
