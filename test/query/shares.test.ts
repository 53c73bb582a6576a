/** Merged answers of several nodes are the same as those of one node with all tiles. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type AggregationCounts,
  aggregate,
  countTiles,
  mergeAggregationCounts,
  toAggregations,
} from '../../src/query/aggregate.js';
import {
  aggregations as all,
  collectionExtents,
  collectionSummaries,
  mergeExtents,
  mergeSummaries,
} from '../../src/query/index.js';
import { mergeHits, searchIndex } from '../../src/query/search.js';
import { ColumnIndex, type IndexRun, type RunFilter, type TileRecord } from '../../src/storage/index.js';
import { tiles } from './tiles.js';
import { wideFilters } from './trees.js';

const indexOf = (records: TileRecord[]) => {
  const index = new ColumnIndex();
  // Some rows are sorted, others are in the tail.
  index.load(records.slice(5));
  index.add(records.slice(0, 5));
  return index;
};

/** A value after its conversion to JSON and back. */
const sent = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** An owner of the tiles with even or odd numbers; it has others as well, which are not queried. */
interface Split {
  whole: ColumnIndex;
  parts: {
    index: ColumnIndex;
    share: { only: RunFilter | undefined; key: string; seq: undefined };
  }[];
}

const splits = fc
  .tuple(
    fc.uniqueArray(tiles, { maxLength: 60, selector: ({ id }) => id }),
    fc.array(fc.nat({ max: 2 }), { minLength: 60, maxLength: 60 }),
  )
  .map(([records, owners]): Split => {
    const ownerOf = new Map(records.map(({ id }, i) => [id, owners[i]!]));
    const parts = [0, 1, 2].map((owner) => {
      const more = records.filter(({ id }) => ownerOf.get(id) === owner || ownerOf.get(id) === 0);
      const index = indexOf(more);
      return {
        index,
        share: {
          seq: undefined,
          key: `${owner}`,
          only: (rows: IndexRun) => (row: number) => ownerOf.get(rows.idOf(row)) === owner,
        },
      };
    });
    return { whole: indexOf(records), parts };
  });

test('counts', async () => {
  const params = {
    aggregations: all.map(({ name }) => name),
    grid_geohash_frequency_precision: 2,
  };
  await fc.assert(
    fc.asyncProperty(splits, wideFilters, async ({ whole, parts }, filter) => {
      const tallies = await Promise.all(
        parts.map(
          async ({ index, share }): Promise<AggregationCounts> =>
            sent(await countTiles(index, filter, params, share)),
        ),
      );
      assert.deepEqual(
        toAggregations(mergeAggregationCounts(tallies), params),
        await aggregate(whole, filter, params),
      );
    }),
    { seed: 42, numRuns: 100 },
  );
  assert.deepEqual(
    toAggregations(mergeAggregationCounts([]), params),
    await aggregate(new ColumnIndex(), { op: 'and', args: [] }, params),
  );
});

test('extents and summaries of collections', async () => {
  await fc.assert(
    fc.asyncProperty(splits, async ({ whole, parts }) => {
      const extents = await Promise.all(
        parts.map(async ({ index, share }) => new Map(sent([...(await collectionExtents(index, share))]))),
      );
      assert.deepEqual(byId(mergeExtents(extents)), byId(await collectionExtents(whole)));
      const contents = await Promise.all(
        parts.map(async ({ index, share }) => new Map(sent([...(await collectionSummaries(index, share))]))),
      );
      assert.deepEqual(byId(mergeSummaries(contents)), byId(await collectionSummaries(whole)));
    }),
    { seed: 42, numRuns: 150 },
  );
});

const byId = <T>(map: ReadonlyMap<string, T>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

test('pages', async () => {
  const orders = fc.constantFrom(
    [],
    [{ column: 'cloud' as const, descending: false }],
    [
      { column: 'coverage' as const, descending: true },
      { column: 'start' as const, descending: false },
    ],
  );
  await fc.assert(
    fc.asyncProperty(
      splits,
      wideFilters,
      orders,
      fc.nat({ max: 20 }),
      async ({ whole, parts }, filter, order, limit) => {
        const search = { filter, order, limit, after: undefined };
        const found = await Promise.all(
          parts.map(async ({ index, share }) => sent(await searchIndex(index, search, share))),
        );
        assert.deepEqual(mergeHits(found, search), await searchIndex(whole, search));
      },
    ),
    { seed: 42, numRuns: 150 },
  );
});
