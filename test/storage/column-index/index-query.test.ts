/** Compares queries of the index with a scan of the records, in any order, while tiles are added and removed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { gridByName } from '../../../src/grid/index.js';
import type { IndexQuery } from '../../../src/storage/column-index/query.js';
import {
  type CellKeyRange,
  ColumnIndex,
  type SortColumn,
  type SortOrder,
  type TileRecord,
} from '../../../src/storage/index.js';
import { newestFirst, tile, tiles } from '../../query/tiles.js';

const DAY = 86_400_000;
const BASE = Date.UTC(2018, 6, 1);

const columns: SortColumn[] = [
  'start',
  'end',
  'cloud',
  'coverage',
  'created',
  'collection',
  'geocode',
  'platform',
  'source',
  'id',
];

/** The conditions of a query, for both implementations. */
interface Question {
  minCoverage?: number;
  prefixes?: string[];
  ids?: number[];
  time?: { start: number; end: number };
  order?: SortOrder;
}

const times = fc.oneof(
  fc.constantFrom(-Infinity, Infinity),
  fc.integer({ min: -1, max: 40 }).map((days) => BASE + days * DAY),
);
const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
const questions: fc.Arbitrary<Question> = fc.record({
  minCoverage: optional(fc.constantFrom(20.1, 99.9)),
  prefixes: optional(fc.array(fc.constantFrom('s', 's0', '0', '01', '9', '8', '3'), { maxLength: 3 })),
  ids: fc.option(fc.array(fc.nat(160), { maxLength: 30 }), { nil: undefined, freq: 3 }),
  time: optional(fc.tuple(times, times).map(([start, end]) => ({ start, end }))),
  order: optional(
    fc.array(fc.record({ column: fc.constantFrom(...columns), descending: fc.boolean() }), { maxLength: 3 }),
  ),
});

function rangesOf(prefix: string): CellKeyRange[] {
  return (['geohash', 'quadtile'] as const)
    .filter((grid) => gridByName(grid).accepts(prefix))
    .map((grid) => {
      const { key, span } = gridByName(grid).key(prefix);
      return { grid, from: key, to: key + span };
    });
}

/** A cell by its key, which its first child shares. */
function isIn({ grid, from, to }: CellKeyRange, record: TileRecord): boolean {
  const { key } = gridByName(record.grid).key(record.geocode);
  return record.grid === grid && key >= from && key < to;
}

function queryOf(records: TileRecord[], question: Question): IndexQuery {
  const { minCoverage, prefixes, ids, time, order } = question;
  const query: IndexQuery = { time, order };
  if (minCoverage !== undefined)
    query.where =
      ({ columns }) =>
      (row) =>
        columns.coverage[row] >= minCoverage;
  if (prefixes) query.ranges = prefixes.flatMap(rangesOf);
  if (ids) query.ids = ids.map((pick) => records[pick]?.id ?? 'unknown');
  return query;
}

/** The matching tiles in their order, from the records alone. */
function scan(records: TileRecord[], { minCoverage, prefixes, ids, time, order = [] }: Question): string[] {
  const wanted = ids && new Set(ids.map((pick) => records[pick]?.id));
  const text = (p: string, q: string) => (p < q ? -1 : p > q ? 1 : 0);
  const fieldOf = (record: TileRecord, column: SortColumn) => {
    if (column === 'cloud') return record.cloudCover === null ? null : Math.fround(record.cloudCover);
    if (column === 'coverage') return Math.fround(record.coverage);
    return column === 'created' ? record.createdAt : record[column];
  };
  const compare = (a: TileRecord, b: TileRecord) => {
    for (const { column, descending } of order) {
      const [p, q] = [fieldOf(a, column), fieldOf(b, column)];
      if (p === q) continue;
      if (p === null) return 1;
      if (q === null) return -1;
      const difference = typeof p === 'number' ? p - Number(q) : text(p, String(q));
      return descending ? -difference : difference;
    }
    return newestFirst(a, b);
  };
  return records
    .filter(
      (record) =>
        (minCoverage === undefined || Math.fround(record.coverage) >= minCoverage) &&
        (!prefixes || prefixes.flatMap(rangesOf).some((range) => isIn(range, record))) &&
        (!wanted || wanted.has(record.id)) &&
        (!time || (record.start <= time.end && record.end >= time.start)),
    )
    .sort(compare)
    .map((record) => record.id);
}

/** Times, of which some end before they begin. */
const anyTiles = fc
  .tuple(tiles, fc.constantFrom(0, 0, 0, 0, -3 * DAY))
  .map(([record, more]) => ({ ...record, end: record.end + more }));
const manyTiles = fc.uniqueArray(anyTiles, {
  minLength: 30,
  maxLength: 150,
  selector: (record) => record.id,
});

/** An index with some of the records sorted, some in the tail, and others removed. */
function indexOf(records: TileRecord[], tail: number): ColumnIndex {
  const index = new ColumnIndex();
  const gone = records.map((record) => ({ ...record, id: `${record.id}_split-1`, source: 'split' as const }));
  index.load([...records.slice(tail), ...gone.slice(tail)]);
  index.add([...records.slice(0, tail), ...gone.slice(0, tail)]);
  index.remove(gone.map((record) => record.id));
  return index;
}

test('any query returns the same as a scan, as one page and in pages', async () => {
  await fc.assert(
    fc.asyncProperty(
      manyTiles,
      fc.nat(60),
      fc.array(questions, { minLength: 8, maxLength: 8 }),
      fc.integer({ min: 1, max: 40 }),
      fc.boolean(),
      async (periods, tail, some, limit, areInstants) => {
        const records = areInstants ? periods.map((record) => ({ ...record, end: record.start })) : periods;
        const index = indexOf(records, tail);
        for (const question of some) {
          const expected = scan(records, question);
          const query = queryOf(records, question);
          assert.deepEqual(index.query(query), { ids: expected, matched: expected.length });
          const seen: string[] = [];
          await index.forEach(query, (rows) => (row) => seen.push(rows.idOf(row)));
          assert.deepEqual(seen.sort(), expected.toSorted());
          const walked: string[] = [];
          for (let after: IndexQuery['after']; ; ) {
            const count = walked.length % 2 === 0;
            // A cursor survives its conversion to JSON.
            const page = index.query({ ...query, after, limit, count });
            walked.push(...page.ids);
            if (count) assert.equal(page.matched, expected.length);
            assert.ok(page.ids.length === limit || !page.next);
            if (!page.next) break;
            after = JSON.parse(JSON.stringify(page.next));
          }
          assert.deepEqual(walked, expected);
        }
      },
    ),
    { seed: 42, numRuns: 60 },
  );
});

/** Words, of which some look like cells, suffixes or ends of ids. */
const words = fc.oneof(
  fc.constantFrom('s', 'g9q8', 'q0231', 'g9q8yy', 'gs0', 'split-1', 'a', '_', 'g', 'q', ''),
  fc.string({ unit: 'grapheme', maxLength: 5 }),
);
const texts = fc.array(words, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('_'));
const cells = fc.constantFrom(
  { grid: 'geohash' as const, geocode: '9q8' },
  { grid: 'geohash' as const, geocode: '9q8yy' },
  { grid: 'geohash' as const, geocode: 's0' },
  { grid: 'quadtile' as const, geocode: '0231' },
);
const oddTiles = fc
  .record({ cell: cells, collection: texts, scene: texts, end: texts, kind: fc.nat(3), start: fc.nat(3) })
  .map(({ cell, collection, scene, end, kind, start }) => {
    const usual = tile({ ...cell, collection, scene, start, end: start });
    const id = [usual.id, `${usual.id}_${end}`, `${usual.id}${end}`, end][kind]!;
    return { ...usual, id };
  });

test('every id leads to its row, and the row to its id', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(oddTiles, { maxLength: 40 }),
      fc.nat(40),
      fc.array(texts),
      async (all, tail, others) => {
        const index = new ColumnIndex();
        const expected = new Map(all.map((record) => [record.id, record]));
        index.load(all.slice(tail));
        index.add(all.slice(0, tail));
        for (const record of [...all.slice(tail), ...all.slice(0, tail)]) expected.set(record.id, record);
        for (const round of ['with a tail', 'sorted']) {
          assert.equal(index.size, expected.size, round);
          for (const [id, record] of expected) {
            const found: [string, number][] = [];
            await index.forEach(
              { ids: [id] },
              (rows) => (row) => found.push([rows.idOf(row), rows.columns.start[row]!]),
            );
            assert.deepEqual(found, [[id, record.start]]);
          }
          for (const id of others) assert.equal(index.has(id), expected.has(id));
          const sorted = [...expected.values()].sort(newestFirst).map((record) => record.id);
          assert.deepEqual(index.query({}).ids, sorted);
          index.compactTail();
        }
      },
    ),
    { seed: 42, numRuns: 150 },
  );
});

test('during a compaction of the tail in steps, every turn sees all changes', async () => {
  const index = new ColumnIndex();
  const expected = new Map<string, TileRecord>();
  const places = ['s0', 's01', '9q8', '9q8yy', 'u4pr', '6'];
  let made = 0;
  const make = () => {
    const i = made++;
    const suffix = i % 5 === 0 ? `_split-${i}` : '';
    const record = tile({ scene: `s${i % 7000}`, geocode: places[i % 6]!, start: (i * 7919) % 5000 });
    return { ...record, id: record.id + suffix };
  };
  const add = (count: number) => {
    const records = Array.from({ length: count }, make);
    index.add(records);
    for (const record of records) expected.set(record.id, record);
  };
  const removeSome = (count: number) => {
    const step = Math.floor(expected.size / count) || 1;
    const ids = [...expected.keys()].filter((_, i) => i % step === made % step);
    index.remove(ids);
    for (const id of ids) expected.delete(id);
  };
  const check = () => {
    const records = [...expected.values()].sort(newestFirst);
    assert.equal(index.size, records.length);
    assert.deepEqual(
      index.query({ limit: 500 }).ids,
      records.slice(0, 500).map((record) => record.id),
    );
    const ranges = rangesOf('9');
    const inRange = records.filter((record) => record.geocode.startsWith('9')).map((record) => record.id);
    assert.deepEqual(index.query({ ranges }).ids, inRange);
    for (const record of records.slice(-50)) assert.ok(index.has(record.id));
  };
  add(9000);
  let turns = 0;
  for (let round = 0; round < 4; round++) {
    add(5000);
    let merging = true;
    const merged = index.compact().then(() => {
      merging = false;
    });
    for (; merging; turns++) {
      if (turns % 5 === 0) add(20);
      if (turns % 7 === 0) removeSome(30);
      if (turns % 3 === 0) check();
      await setImmediate();
    }
    await merged;
    check();
  }
  assert.ok(turns > 20, `${turns} turns`);
  // A synchronous compaction may end a running one.
  add(6000);
  const under = index.compact();
  await setImmediate();
  add(10);
  index.compactTail();
  check();
  await under;
  check();
});
