/** Runs of the index and their compaction: in every state, queries return the same as on a list of the tiles. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { aggregate, and, type Filter, searchTiles } from '../../../src/query/index.js';
import { runsToCompact } from '../../../src/storage/column-index/compaction.js';
import { ColumnIndex, type SortOrder, type TileRecord } from '../../../src/storage/index.js';
import { orders, scan } from '../../query/scan.js';
import { base, day, tile, tiles } from '../../query/tiles.js';
import { filters, wideFilters } from '../../query/trees.js';

const everything = and([]);
type Content = ReadonlyMap<string, TileRecord>;

/** Limits for which compactions are frequent and have many steps. */
const limits = { maxTailRows: 6, rowsPerStep: 3 };

/** Few ids, so that tiles often replace others; some ids do not follow from the other fields. */
const fewTiles = fc.tuple(tiles, fc.nat(50)).map(([record, i]): TileRecord => {
  if (i % 5 === 0) return { ...record, id: `odd ${i}` };
  const usual = tile({ ...record, grid: 'geohash', geocode: `9q8y${i % 10}`, scene: `s${i % 3}`, id: '' });
  return i % 5 === 1 ? { ...usual, id: `${usual.id}_split-1` } : usual;
});
const queries = fc.record({
  seq: fc.nat(),
  filter: fc.oneof(fc.constant(everything), filters, wideFilters),
  order: orders,
  limit: fc.integer({ min: 1, max: 9 }),
});
type Query = typeof queries extends fc.Arbitrary<infer Q> ? Q : never;

const change = fc.record({
  added: fc.array(fewTiles, { maxLength: 12 }),
  removed: fc.array(fc.nat(60), { maxLength: 6 }),
});
const steps = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('commit' as const), change }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('change' as const), change }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('turns' as const), count: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('every turn' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('merge' as const, 'restore' as const) }) },
);

/** An index, and its expected content now and after each commit. */
class Model {
  readonly index = new ColumnIndex(limits);
  private readonly states: Content[] = [new Map()];
  private asked = 0;

  constructor(private readonly queries: Query[]) {}

  get now(): Content {
    return this.states.at(-1)!;
  }

  change({ added, removed }: { added: TileRecord[]; removed: number[] }, isCommit: boolean): void {
    const { index, states } = this;
    const gone = removed.map((pick) => [...this.now.keys()][pick] ?? 'unknown');
    const next = new Map(this.now);
    for (const id of gone) next.delete(id);
    for (const record of added) next.set(record.id, record);
    if (isCommit) index.commit(states.length, gone, added);
    else {
      index.remove(gone);
      index.add(added);
      states.pop();
    }
    states.push(next);
  }

  /** Compares the current content, and that as of a commit. */
  async check(): Promise<void> {
    const { index, states } = this;
    const query = this.queries[this.asked++ % this.queries.length]!;
    await assertSame(index, this.now, query);
    const seq = index.oldest + (query.seq % (states.length - index.oldest));
    await assertSame(index, states[seq]!, query, (read) => index.asOf(seq, read));
  }
}

/** Runs a read on the index of some time. */
type AsOf = <T>(read: () => T) => T;

async function assertSame(
  index: ColumnIndex,
  content: Content,
  { filter, order, limit }: Query,
  asOf: AsOf = (read) => read(),
): Promise<void> {
  const records = [...content.values()];
  asOf(() => {
    assert.equal(index.size, content.size);
    for (const record of records) assert.ok(index.agrees(record), record.id);
  });
  const all = await asOf(() => searchTiles(index, everything));
  assert.deepEqual(all.ids, scan(records, everything));
  const expected = scan(records, filter, order);
  const walked = await walk(index, filter, order, limit, asOf);
  assert.deepEqual(walked, { ids: expected, matched: expected.length });
  const fresh = new ColumnIndex();
  fresh.load(records);
  assert.deepEqual(await asOf(() => countsOf(index, filter)), await countsOf(fresh, filter));
}

async function walk(index: ColumnIndex, filter: Filter, order: SortOrder, limit: number, asOf: AsOf) {
  const ids: string[] = [];
  for (let token: string | undefined; ; ) {
    const page = await asOf(() => searchTiles(index, filter, { order, limit, token }));
    ids.push(...page.ids);
    token = page.next;
    if (token === undefined) return { ids, matched: page.numberMatched };
  }
}

const countsOf = (index: ColumnIndex, filter: Filter) =>
  aggregate(index, filter, {
    aggregations: 'total_count,datetime_min,datetime_max,collection_frequency,cloud_cover_frequency',
  });

test('queries return the same as on a list, whatever changes during a compaction', async () => {
  let turnsOfMerges = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(steps, { minLength: 5, maxLength: 25 }),
      fc.array(queries, { minLength: 5, maxLength: 5 }),
      async (schedule, questions) => {
        const model = new Model(questions);
        const { index } = model;
        let tidying: Promise<void> | undefined;
        /** A turn of the event loop, in which a running compaction makes a step. */
        const turn = async () => {
          tidying ??= index.compact().then(() => {
            tidying = undefined;
          });
          await setImmediate();
          await model.check();
        };
        for (const step of schedule) {
          if (step.kind === 'commit') model.change(step.change, true);
          else if (step.kind === 'change') model.change(step.change, false);
          else if (step.kind === 'merge') index.compactTail();
          else if (step.kind === 'restore') index.restore(index.images());
          else if (step.kind === 'turns') for (let i = 0; i < step.count; i++) await turn();
          else for (await turn(); tidying; turnsOfMerges++) await turn();
          await model.check();
        }
        await tidying;
        await model.check();
      },
    ),
    { seed: 42, numRuns: 30 },
  );
  assert.ok(turnsOfMerges > 500, `${turnsOfMerges} turns`);
});

test('copied rows per tile, and the number of runs, are logarithmic in the number of tiles', async () => {
  const TAIL = 16;
  const COUNT = 6_000;
  const index = new ColumnIndex({ maxTailRows: TAIL, rowsPerStep: 1e6 });
  let longest = 0;
  let written = 0;
  let before = new Set<unknown>();
  for (let i = 0; i < COUNT; i += TAIL + 1) {
    index.add(
      Array.from({ length: TAIL + 1 }, (_, j) => tile({ scene: `s${i + j}`, start: base + i * day })),
    );
    await index.compact();
    const images = index.images();
    longest = Math.max(longest, images.length);
    for (const { columns, rows } of images) if (!before.has(columns)) written += rows;
    before = new Set(images.map(({ columns }) => columns));
  }
  // log4(6,000 / 17) is 4.2. Copying all tiles in each compaction would write 176 rows for each tile.
  assert.ok(longest <= 5, `${longest} runs`);
  assert.ok(written < 10 * COUNT, `${written} rows`);
});

test('a compaction merges runs that are short compared with the merged rows, and keeps longer ones', () => {
  const run = (rowCount: number, unsorted = 0, obsolete = 0) => ({ rowCount, unsorted, obsolete });
  const tail = run(10, 10);
  const [a, b, c] = [run(25), run(110), run(1000)];
  assert.deepEqual(runsToCompact([c, a, b, tail]), [tail, a]);
  assert.deepEqual(runsToCompact([c, run(100), a, tail]), [tail, a, run(100)]);
  // Only rows that a compaction keeps count.
  const shrunken = run(1000, 0, 990);
  assert.deepEqual(runsToCompact([shrunken, tail]), [tail, shrunken]);
  assert.deepEqual(runsToCompact([c, run(30), tail]), [tail]);
});

test('a run that is mostly deleted is compacted alone', async () => {
  const index = new ColumnIndex(limits);
  const make = (round: number, count: number) =>
    Array.from({ length: count }, (_, i) => tile({ scene: `r${round}-${i}` }));
  index.load(make(0, 100));
  index.add(make(1, 3));
  index.remove(make(0, 54).map(({ id }) => id));
  await index.compact();
  assert.deepEqual(
    index.images().map(({ rows }) => rows),
    [46, 3],
  );
});
