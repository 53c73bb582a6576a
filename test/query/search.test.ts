import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { searchTiles, type TileFilter } from '../../src/query/index.js';
import { ColumnIndex, type TileRecord } from '../../src/storage/index.js';
import { matches } from './matches.js';
import { filters, newestFirst, tile, tiles } from './tiles.js';

const manyTiles = fc.uniqueArray(tiles, { minLength: 40, maxLength: 150, selector: (record) => record.id });
const runs = { seed: 42, numRuns: 400 };

function indexOf(records: TileRecord[], loaded = records.length): ColumnIndex {
  const index = new ColumnIndex();
  index.load(records.slice(0, loaded));
  index.add(records.slice(loaded));
  return index;
}

const scan = (records: TileRecord[], filter: TileFilter) =>
  records
    .filter((record) => matches(filter, record))
    .sort(newestFirst)
    .map((record) => record.id);

test('a search gives what a scan over all records gives', () => {
  let found = 0;
  fc.assert(
    fc.property(
      manyTiles,
      fc.array(filters, { minLength: 10, maxLength: 10 }),
      fc.nat(40),
      (records, some, tail) => {
        const index = indexOf(records, records.length - tail);
        for (const filter of some) {
          const expected = scan(records, filter);
          found += expected.length;
          assert.deepEqual(searchTiles(index, filter), { ids: expected, numberMatched: expected.length });
        }
      },
    ),
    { ...runs, numRuns: 150 },
  );
  assert.ok(found > 1000, `only ${found} tiles were found in all`);
});

test('a search by ids gives these tiles alone, also with other conditions', () => {
  fc.assert(
    fc.property(manyTiles, filters, fc.array(fc.nat(200)), (records, filter, picks) => {
      const ids = [...picks.map((pick) => records[pick]?.id ?? `unknown${pick}`)];
      const expected = scan(records, { ...filter, ids });
      assert.deepEqual(searchTiles(indexOf(records), { ...filter, ids }).ids, expected);
    }),
    runs,
  );
});

test('pages give every tile that stays exactly once, while others come and go', () => {
  fc.assert(
    fc.property(
      manyTiles,
      filters,
      fc.integer({ min: 1, max: 9 }),
      fc.infiniteStream(fc.nat()),
      (records, filter, limit, choice) => {
        const next = () => choice.next().value;
        const staying = records.filter((_, i) => i % 3 !== 0);
        const others = records.filter((_, i) => i % 3 === 0);
        const present = new Map(records.slice(0, records.length / 2).map((record) => [record.id, record]));
        for (const record of staying) present.set(record.id, record);
        const index = indexOf([...present.values()]);
        const walked: string[] = [];
        let token: string | undefined;
        do {
          const page = searchTiles(index, filter, { limit, token });
          assert.equal(page.numberMatched, scan([...present.values()], filter).length);
          assert.ok(page.ids.length <= limit);
          if (page.next) assert.equal(page.ids.length, limit);
          walked.push(...page.ids);
          token = page.next;
          assert.ok(walked.length <= 2 * records.length, 'the walk comes to an end');
          for (let change = 0; change < 3; change++) {
            const record = others[next() % others.length]!;
            if (present.delete(record.id)) index.remove([record.id]);
            else {
              present.set(record.id, record);
              index.add([record]);
            }
          }
        } while (token);
        assert.equal(new Set(walked).size, walked.length);
        const kept = new Set(staying.map((record) => record.id));
        assert.deepEqual(
          walked.filter((id) => kept.has(id)),
          scan(staying, filter),
        );
      },
    ),
    runs,
  );
});

test('the last tile of a page may be gone before the next page is asked for', () => {
  const records = ['s1', 's2', 's3', 's4'].map((scene) => tile({ scene }));
  const index = indexOf(records);
  const first = searchTiles(index, {}, { limit: 2 });
  index.remove(first.ids);
  const second = searchTiles(index, {}, { limit: 2, token: first.next! });
  assert.deepEqual(
    second.ids,
    records.slice(2).map((record) => record.id),
  );
  assert.equal(second.numberMatched, 2);
  assert.equal(second.next, undefined);
});

test('limit 0 only counts', () => {
  const index = indexOf([tile({ scene: 's1' }), tile({ scene: 's2' })]);
  assert.deepEqual(searchTiles(index, {}, { limit: 0 }), { ids: [], numberMatched: 2 });
});

test('boxes are closed and may cross the antimeridian', () => {
  // Cell s0 spans 0..11.25 by 0..5.625 degrees.
  const cell = tile({ geocode: 's0' });
  const fiji = tile({ geocode: '80' });
  const index = indexOf([cell, fiji]);
  const ids = (bbox: TileFilter['bbox']) => searchTiles(index, { bbox }).ids;
  assert.deepEqual(ids([11.25, 5.625, 12, 6]), [cell.id]);
  assert.deepEqual(ids([-1, -1, 0, 0]), [cell.id]);
  assert.deepEqual(ids([11.250001, 0, 12, 6]), []);
  assert.deepEqual(ids([5, 5, 5, 5]), [cell.id]);
  assert.deepEqual(ids([179, 0, -179, 6]), [fiji.id]);
  assert.deepEqual(ids([179, 0, 0, 6]).sort(), [cell.id, fiji.id].sort());
  assert.deepEqual(ids([11.25, 0, -179, 6]).sort(), [cell.id, fiji.id].sort());
  assert.deepEqual(ids([11.26, 0, -179, 6]), [fiji.id]);
  assert.deepEqual(ids([179, 0, 10, 6]).sort(), [cell.id, fiji.id].sort());
});

test('unknown cloud cover fulfils no bound, and the unknown is not 0', () => {
  const clear = tile({ scene: 's1', cloudCover: 0 });
  const unknown = tile({ scene: 's2', cloudCover: null });
  const index = indexOf([clear, unknown]);
  assert.deepEqual(searchTiles(index, { maxCloud: 100 }).ids, [clear.id]);
  assert.deepEqual(searchTiles(index, { minCloud: 0 }).ids, [clear.id]);
  assert.equal(searchTiles(index, {}).numberMatched, 2);
});

test('times match by overlap, ends included', () => {
  const period = tile({ start: 1000, end: 2000 });
  const index = indexOf([period]);
  const found = (start?: number, end?: number) => searchTiles(index, { start, end }).numberMatched;
  assert.equal(found(2000), 1);
  assert.equal(found(2001), 0);
  assert.equal(found(undefined, 1000), 1);
  assert.equal(found(undefined, 999), 0);
  assert.equal(found(1500, 1500), 1);
});

test('a geocode is exact, or with recurse a prefix', () => {
  const records = ['9q8', '9q8y', '9q80', '9q9'].map((geocode) => tile({ geocode }));
  const index = indexOf(records);
  assert.deepEqual(searchTiles(index, { geocode: '9q8' }).ids, [records[0]!.id]);
  assert.equal(searchTiles(index, { geocode: '9q8', recurse: true }).numberMatched, 3);
  assert.equal(searchTiles(index, { geocode: '9q80', recurse: true }).numberMatched, 1);
});

test('tokens that no search has made are refused', () => {
  const index = indexOf([]);
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  for (const token of [
    '',
    'x',
    '%%%',
    encode(1),
    encode([1, 'a']),
    encode(['1', 'a', 'b']),
    encode([1, 'a', 'b', 2]),
    `${encode([1, 'a', 'b'])}=`,
  ]) {
    assert.throws(() => searchTiles(index, {}, { token }), { code: 'TW_QUERY_TOKEN' }, token);
  }
  assert.deepEqual(searchTiles(index, {}, { token: encode([1, 'a', 'b']) }).ids, []);
});
