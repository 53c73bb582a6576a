import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { and, type FilterParams, parseFilter, parseSortby, searchTiles } from '../../src/query/index.js';
import { withTimeout } from '../../src/query/plan.js';
import { createSearch, mergeHits, searchIndex, toSearchPage } from '../../src/query/search.js';
import { ColumnIndex, type TileRecord } from '../../src/storage/index.js';
import { orders, scan } from './scan.js';
import { tile, tiles } from './tiles.js';
import { filters, wideFilters } from './trees.js';

const manyTiles = fc.uniqueArray(tiles, { minLength: 40, maxLength: 150, selector: (record) => record.id });
const runs = { seed: 42, numRuns: 150 };

function indexOf(records: TileRecord[], loaded = records.length): ColumnIndex {
  const index = new ColumnIndex();
  index.load(records.slice(0, loaded));
  index.add(records.slice(loaded));
  return index;
}

const everything = and([]);

test('a search returns the same as a scan of all records', () => {
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
    { ...runs, numRuns: 60 },
  );
  assert.ok(found > 1000, `only ${found} tiles were found in all`);
});

test('a search by ids returns only these tiles, even with other conditions', () => {
  fc.assert(
    fc.property(manyTiles, filters, fc.array(fc.nat(200)), (records, filter, picks) => {
      const ids = [...picks.map((pick) => records[pick]?.id ?? `unknown${pick}`)];
      const both = and([filter, { op: 'in', property: 'id', values: ids }]);
      assert.deepEqual(searchTiles(indexOf(records), both).ids, scan(records, both));
    }),
    runs,
  );
});

test('pages return every tile that stays exactly once, while others are added and removed', () => {
  fc.assert(
    fc.property(
      manyTiles,
      wideFilters,
      orders,
      fc.integer({ min: 1, max: 9 }),
      fc.infiniteStream(fc.nat()),
      (records, filter, order, limit, choice) => {
        const next = () => choice.next().value;
        const staying = records.filter((_, i) => i % 3 !== 0);
        const others = records.filter((_, i) => i % 3 === 0);
        const present = new Map(records.slice(0, records.length / 2).map((record) => [record.id, record]));
        for (const record of staying) present.set(record.id, record);
        const index = indexOf([...present.values()]);
        const walked: string[] = [];
        let token: string | undefined;
        do {
          const page = searchTiles(index, filter, { order, limit, token });
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
          scan(staying, filter, order),
        );
      },
    ),
    runs,
  );
});

test('the last tile of a page may be removed before the next page is requested', () => {
  const records = ['s1', 's2', 's3', 's4'].map((scene) => tile({ scene }));
  const index = indexOf(records);
  const first = searchTiles(index, everything, { limit: 2 });
  index.remove(first.ids);
  const second = searchTiles(index, everything, { limit: 2, token: first.next! });
  assert.deepEqual(
    second.ids,
    records.slice(2).map((record) => record.id),
  );
  assert.equal(second.numberMatched, 2);
  assert.equal(second.next, undefined);
});

test('limit 0 only counts', () => {
  const index = indexOf([tile({ scene: 's1' }), tile({ scene: 's2' })]);
  assert.deepEqual(searchTiles(index, everything, { limit: 0 }), { ids: [], numberMatched: 2 });
});

test('boxes are closed and may cross the antimeridian', () => {
  // Cell s0 spans 0..11.25 by 0..5.625 degrees.
  const cell = tile({ geocode: 's0' });
  const fiji = tile({ geocode: '80' });
  const index = indexOf([cell, fiji]);
  const ids = (bbox: number[]) => searchTiles(index, parseFilter({ bbox })).ids;
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

test('unknown cloud cover meets no bound, and is not 0', () => {
  const clear = tile({ scene: 's1', cloudCover: 0 });
  const unknown = tile({ scene: 's2', cloudCover: null });
  const index = indexOf([clear, unknown]);
  const found = (params: FilterParams) => searchTiles(index, parseFilter(params)).ids;
  assert.deepEqual(found({ maxCloud: 100 }), [clear.id]);
  assert.deepEqual(found({ minCloud: 0 }), [clear.id]);
  assert.equal(searchTiles(index, everything).numberMatched, 2);
});

test('times match by overlap, ends included', () => {
  const period = tile({ start: 1000, end: 2000 });
  const index = indexOf([period]);
  const found = (start: number | null, end: number | null) =>
    searchTiles(index, { op: 't_intersects', property: 'datetime', period: [start, end] }).numberMatched;
  assert.equal(found(2000, null), 1);
  assert.equal(found(2001, null), 0);
  assert.equal(found(null, 1000), 1);
  assert.equal(found(null, 999), 0);
  assert.equal(found(1500, 1500), 1);
});

test('a geocode is exact, or with recurse a prefix', () => {
  const records = ['9q8', '9q8y', '9q80', '9q9'].map((geocode) => tile({ geocode }));
  const index = indexOf(records);
  const found = (params: FilterParams) => searchTiles(index, parseFilter(params)).ids;
  assert.deepEqual(found({ geocode: '9q8' }), [records[0]!.id]);
  assert.equal(found({ geocode: '9q8', recurse: true }).length, 3);
  assert.equal(found({ geocode: '9q80', recurse: true }).length, 1);
});

test('forged tokens are refused', () => {
  const index = indexOf(['s1', 's2', 's3'].map((scene) => tile({ scene })));
  const order = parseSortby('-eo:cloud_cover');
  const { next = '' } = searchTiles(index, everything, { order, limit: 1 });
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const [digest, keys, start, collection, id] = JSON.parse(Buffer.from(next, 'base64url').toString());
  assert.equal(searchTiles(index, everything, { order, limit: 5, token: next }).ids.length, 2);
  for (const token of [
    '',
    'x',
    '%%%',
    `${next}=`,
    encode(1),
    encode([1, 'a']),
    encode([start, collection, id]),
    encode([1, keys, start, collection, id]),
    encode([digest, [], start, collection, 2]),
    encode([digest, ['x'], start, collection, id]),
    encode([digest, [1, 2], start, collection, id]),
    encode([digest, [[]], start, collection, id]),
    encode([digest, 'keys', start, collection, id]),
    encode([digest, keys, '0', collection, id]),
  ]) {
    assert.throws(() => searchTiles(index, everything, { order, token }), { code: 'TW_QUERY_TOKEN' }, token);
  }
});

test('a token is valid only for its own filter and order', () => {
  const index = indexOf(['s1', 's2', 's3'].map((scene) => tile({ scene })));
  const order = parseSortby('+created');
  const filter = parseFilter({ minCoverage: 10 });
  const token = searchTiles(index, filter, { order, limit: 1 }).next!;
  const other = { code: 'TW_QUERY_TOKEN_OTHER_SEARCH' };
  assert.throws(() => searchTiles(index, filter, { token }), other);
  assert.throws(() => searchTiles(index, filter, { order: parseSortby('-created'), token }), other);
  assert.throws(() => searchTiles(index, parseFilter({ minCoverage: 11 }), { order, token }), other);
  const same = parseFilter({ filter: 'pixel_coverage >= 10' });
  assert.equal(searchTiles(index, same, { order, token }).ids.length, 2, 'the same search in other words');
});

test('unknown conditions remain unknown under NOT', () => {
  const known = tile({ scene: 's1', cloudCover: 50, platform: 'p', start: 0, end: 5 });
  const unknown = tile({ scene: 's2', cloudCover: null, platform: null, start: 0, end: 0 });
  const index = indexOf([known, unknown]);
  for (const filter of [
    'NOT eo:cloud_cover <= 10',
    'NOT (eo:cloud_cover <= 10 AND pixel_coverage >= 0)',
    'eo:cloud_cover <> 10',
    'eo:cloud_cover NOT BETWEEN 0 AND 10',
    'eo:cloud_cover NOT IN (1, 2)',
    "platform NOT LIKE 'q%'",
    "platform NOT IN ('q')",
    "NOT T_AFTER(end_datetime, TIMESTAMP('2020-01-01T00:00:00Z'))",
  ])
    assert.deepEqual(searchTiles(index, parseFilter({ filter })).ids, [known.id], filter);
  for (const filter of ['eo:cloud_cover IS NULL', 'platform IS NULL', 'start_datetime IS NULL'])
    assert.deepEqual(searchTiles(index, parseFilter({ filter })).ids, [unknown.id], filter);
  const either = parseFilter({ filter: 'eo:cloud_cover <= 10 OR pixel_coverage >= 0' });
  assert.equal(searchTiles(index, either).numberMatched, 2);
});

test('tiles without a value in the sort column come last, in both directions', () => {
  const covers = [30, null, 10, 20];
  const records = covers.map((cloudCover, i) => tile({ scene: `s${i}`, cloudCover }));
  const index = indexOf(records);
  const walk = (sortby: string) =>
    searchTiles(index, everything, { order: parseSortby(sortby) }).ids.map(
      (id) => records.find((record) => record.id === id)!.cloudCover,
    );
  assert.deepEqual(walk('eo:cloud_cover'), [10, 20, 30, null]);
  assert.deepEqual(walk('-properties.eo:cloud_cover'), [30, 20, 10, null]);
});

test('a filter that takes too long is aborted', () => {
  const index = indexOf(Array.from({ length: 3000 }, (_, i) => tile({ scene: `s${i}` })));
  index.add(Array.from({ length: 3000 }, (_, i) => tile({ scene: `t${i}` })));
  // Neither the sorted rows nor those of the tail alone reach the next clock check.
  const { test: slow } = withTimeout({ test: () => () => true }, 0);
  assert.throws(() => index.query({ where: slow }), { code: 'TW_QUERY_TOO_SLOW' });
  const { test: quick } = withTimeout({ test: () => (row) => row > 1 }, 60_000);
  assert.equal(index.query({ where: quick }).matched, 2 * 2998);
});

test('merged searches of several indexes return the same pages as one index', () => {
  fc.assert(
    fc.property(
      manyTiles,
      filters,
      orders,
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 5 }),
      (records, filter, order, limit, parts) => {
        const whole = indexOf(records);
        const indexes = Array.from({ length: parts }, (_, part) =>
          indexOf(records.filter((_, i) => (i * 7919) % parts === part)),
        );
        let token: string | undefined;
        do {
          const search = createSearch(filter, { order, limit, ...(token !== undefined && { token }) });
          const found = indexes.map(
            (index) =>
              JSON.parse(JSON.stringify(searchIndex(index, search))) as ReturnType<typeof searchIndex>,
          );
          const page = toSearchPage(mergeHits(found, search), search);
          assert.deepEqual(page, toSearchPage(searchIndex(whole, search), search));
          token = page.next;
        } while (token !== undefined);
      },
    ),
    runs,
  );
});
