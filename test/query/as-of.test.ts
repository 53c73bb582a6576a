/** Reads of an index as of an earlier commit, compared with a list of that time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { aggregate, and, type Filter, searchTiles } from '../../src/query/index.js';
import { ColumnIndex, type SortOrder, type TileRecord } from '../../src/storage/index.js';
import { orders, scan } from './scan.js';
import { tile, tiles } from './tiles.js';
import { filters, wideFilters } from './trees.js';

const everything = and([]);
type Content = ReadonlyMap<string, TileRecord>;

/** Few ids, so that most tiles of a commit replace others. */
const fewTiles = fc
  .tuple(tiles, fc.nat(25))
  .map(
    ([record, i]): TileRecord =>
      tile(
        i % 3 === 0
          ? { ...record, id: `odd ${i}` }
          : { ...record, grid: 'geohash', geocode: `9q8y${i % 10}`, id: '' },
      ),
  );
const tileLists = fc.array(fewTiles, { maxLength: 15 });
const commits = fc.record({ added: tileLists, removed: fc.array(fc.nat(40), { maxLength: 8 }) });
/** Changes between commits. */
const between = fc.constantFrom('nothing', 'nothing', 'merge', 'tidy');

const countsOf = (index: ColumnIndex) =>
  aggregate(index, everything, { aggregations: 'total_count,collection_frequency,grid_geohash_frequency' });

/** `asOf` runs each read on the index of some time. */
async function assertSame(
  index: ColumnIndex,
  content: Content,
  [filter, order, limit]: [Filter, SortOrder, number],
  asOf: <T>(read: () => T) => T = (read) => read(),
) {
  const records = [...content.values()];
  asOf(() => {
    assert.equal(index.size, content.size);
    for (const [id, record] of content) assert.ok(index.agrees(record), id);
  });
  const all = await asOf(() => searchTiles(index, everything));
  assert.deepEqual(all.ids, scan(records, everything));
  const expected = scan(records, filter, order);
  const ids: string[] = [];
  for (let token: string | undefined, more = true; more; more = token !== undefined) {
    const page = await asOf(() => searchTiles(index, filter, { order, limit, token }));
    assert.equal(page.numberMatched, expected.length);
    ids.push(...page.ids);
    token = page.next;
  }
  assert.deepEqual(ids, expected);
  const fresh = new ColumnIndex();
  fresh.load(records);
  assert.deepEqual(await asOf(() => countsOf(index)), await countsOf(fresh));
}

test('a read as of a commit returns the same as on a list of that time, whatever changed later', async () => {
  await fc.assert(
    fc.asyncProperty(
      tileLists,
      fc.array(fc.tuple(commits, between), { minLength: 1, maxLength: 12 }),
      fc.array(fc.tuple(fc.nat(), fc.oneof(filters, wideFilters), orders, fc.integer({ min: 1, max: 9 })), {
        minLength: 8,
        maxLength: 8,
      }),
      async (loaded, steps, reads) => {
        const index = new ColumnIndex();
        index.load(loaded);
        index.startAt(7);
        const state = new Map(loaded.map((record) => [record.id, record]));
        const states: Content[] = [new Map(state)];
        const changes = [index.changes];
        for (const [{ added, removed }, then] of steps) {
          const gone = removed.map((pick) => [...state.keys()][pick] ?? 'unknown');
          index.commit(7 + states.length, gone, added);
          for (const id of gone) state.delete(id);
          for (const record of added) state.set(record.id, record);
          states.push(new Map(state));
          changes.push(index.changes);
          if (then === 'merge') index.compactTail();
          if (then === 'tidy') await index.compact();
          const [pick, ...search] = reads[states.length % reads.length]!;
          const at = pick % states.length;
          await assertSame(index, states[at]!, search, (read) => index.asOf(7 + at, read));
        }
        for (const [pick, ...search] of reads) {
          const at = pick % states.length;
          await assertSame(index, states[at]!, search, (read) => index.asOf(7 + at, read));
          index.asOf(7 + at, () => assert.equal(index.changes, changes[at]));
          await assertSame(index, state, search);
        }
      },
    ),
    { seed: 42, numRuns: 100 },
  );
});

test('background compactions keep the rows that reads as of earlier commits need', async () => {
  const index = new ColumnIndex();
  const letters = '0123456789bcdefghjkmnpqrstuvwxyz';
  const make = (i: number, round: number) =>
    tile({
      scene: `s${i}`,
      geocode: `9q8${letters[i % 32]}${letters[(i >> 5) % 32]}`,
      start: (i * 7919 + round * 31) % 5000,
    });
  let state: Content = new Map();
  const states = [state];
  let tidying = Promise.resolve();
  for (let round = 0; round < 12; round++) {
    const added = Array.from({ length: 3000 }, (_, i) => make(i + round * 1500, round));
    const removed = [...state.keys()].filter((_, i) => i % 20 === round);
    index.commit(round + 1, removed, added);
    const next = new Map(state);
    for (const id of removed) next.delete(id);
    for (const record of added) next.set(record.id, record);
    state = next;
    states.push(next);
    // Some commits arrive during a compaction.
    if (round % 3 === 0) {
      await tidying;
      tidying = index.compact();
    } else await new Promise(setImmediate);
  }
  const assertStates = async () => {
    for (let seq = index.oldest; seq < states.length; seq++) {
      const page = await index.asOf(seq, () => searchTiles(index, everything, { limit: 1 }));
      assert.equal(page.numberMatched, states[seq]!.size);
      index.asOf(seq, () => {
        for (const [id, record] of states[seq]!) assert.ok(index.agrees(record), id);
      });
    }
  };
  assert.ok(index.oldest <= 6, `${index.oldest}`);
  await assertStates();
  await tidying;
  index.compactTail();
  await assertStates();
});

test('after a change other than the next commit, earlier commits cannot be read', () => {
  const index = new ColumnIndex();
  const one = tile({ scene: 'one' });
  const two = tile({ scene: 'two' });
  const begin = () => {
    index.load([one]);
    index.startAt(4);
    index.commit(5, [], [two]);
    assert.equal(
      index.asOf(4, () => index.size),
      1,
    );
  };
  const changes = [
    () => index.remove([two.id]),
    () => index.add([tile({ scene: 'three' })]),
    () => index.commit(5, [], [tile({ scene: 'three' })]),
    () => index.commit(9, [two.id], []),
    () => index.load([two]),
    () => index.restore(index.images()),
  ];
  for (const change of changes) {
    begin();
    change();
    assert.throws(() => index.asOf(4, () => index.size), { code: 'TW_STORAGE_TOO_OLD' });
    assert.equal(
      index.asOf(9, () => index.size),
      index.size,
    );
  }
});

test('commits are kept for a minute, up to a number of rows', async () => {
  const index = new ColumnIndex();
  const commit = (seq: number, now: number, rows = 1) =>
    index.commit(
      seq,
      [],
      Array.from({ length: rows }, (_, i) => tile({ scene: `${i}`, start: seq })),
      now,
    );
  commit(1, 0);
  commit(2, 50_000);
  assert.equal(index.oldest, 0);
  commit(3, 61_000);
  assert.equal(index.oldest, 1);
  for (let seq = 4; seq < 14; seq++) commit(seq, 62_000, 10_000);
  // Each commit replaces the tiles of the one before.
  assert.equal(index.oldest, 11);
  const page = await index.asOf(11, () => searchTiles(index, everything));
  assert.equal(page.numberMatched, 10_000);
});
