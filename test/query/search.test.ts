import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { compileFilter } from '../../src/query/compile.js';
import type { TextExpression } from '../../src/query/filter.js';
import {
  aggregate,
  and,
  type Filter,
  type FilterParams,
  parseFilter,
  parseSortby,
  searchTiles,
} from '../../src/query/index.js';
import { foldingFunctions, foldPattern, literalPattern } from '../../src/query/operators.js';
import { checkWork } from '../../src/query/plan.js';
import {
  createSearch,
  mergeHits,
  type SearchHits,
  searchIndex,
  toSearchPage,
} from '../../src/query/search.js';
import { ColumnIndex, type TileRecord } from '../../src/storage/index.js';
import { orders, scan } from './scan.js';
import { base, cells, day, tile, tiles } from './tiles.js';
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

test('a search returns the same as a scan of all records', async () => {
  let found = 0;
  await fc.assert(
    fc.asyncProperty(
      manyTiles,
      fc.array(filters, { minLength: 10, maxLength: 10 }),
      fc.nat(40),
      async (records, some, tail) => {
        const index = indexOf(records, records.length - tail);
        for (const filter of some) {
          const expected = scan(records, filter);
          found += expected.length;
          const page = await searchTiles(index, filter);
          assert.deepEqual(page, { ids: expected, numberMatched: expected.length });
        }
      },
    ),
    { ...runs, numRuns: 60 },
  );
  assert.ok(found > 1000, `only ${found} tiles were found in all`);
});

test('a search by ids returns only these tiles, even with other conditions', async () => {
  await fc.assert(
    fc.asyncProperty(manyTiles, filters, fc.array(fc.nat(200)), async (records, filter, picks) => {
      const ids = [...picks.map((pick) => records[pick]?.id ?? `unknown${pick}`)];
      const both = and([filter, { op: 'in', property: 'id', values: ids }]);
      assert.deepEqual((await searchTiles(indexOf(records), both)).ids, scan(records, both));
    }),
    runs,
  );
});

test('pages return every tile that stays exactly once, while others are added and removed', async () => {
  await fc.assert(
    fc.asyncProperty(
      manyTiles,
      wideFilters,
      orders,
      fc.integer({ min: 1, max: 9 }),
      fc.infiniteStream(fc.nat()),
      async (records, filter, order, limit, choice) => {
        const next = () => choice.next().value;
        const staying = records.filter((_, i) => i % 3 !== 0);
        const others = records.filter((_, i) => i % 3 === 0);
        const present = new Map(records.slice(0, records.length / 2).map((record) => [record.id, record]));
        for (const record of staying) present.set(record.id, record);
        const index = indexOf([...present.values()]);
        const walked: string[] = [];
        let token: string | undefined;
        do {
          const page = await searchTiles(index, filter, { order, limit, token });
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

test('the last tile of a page may be removed before the next page is requested', async () => {
  const records = ['s1', 's2', 's3', 's4'].map((scene) => tile({ scene }));
  const index = indexOf(records);
  const first = await searchTiles(index, everything, { limit: 2 });
  index.remove(first.ids);
  const second = await searchTiles(index, everything, { limit: 2, token: first.next! });
  assert.deepEqual(
    second.ids,
    records.slice(2).map((record) => record.id),
  );
  assert.equal(second.numberMatched, 2);
  assert.equal(second.next, undefined);
});

test('limit 0 only counts', async () => {
  const index = indexOf([tile({ scene: 's1' }), tile({ scene: 's2' })]);
  assert.deepEqual(await searchTiles(index, everything, { limit: 0 }), { ids: [], numberMatched: 2 });
});

test('boxes are closed and may cross the antimeridian', async () => {
  // Cell s0 spans 0..11.25 by 0..5.625 degrees.
  const cell = tile({ geocode: 's0' });
  const fiji = tile({ geocode: '80' });
  const index = indexOf([cell, fiji]);
  const ids = async (bbox: number[]) => (await searchTiles(index, parseFilter({ bbox }))).ids;
  assert.deepEqual(await ids([11.25, 5.625, 12, 6]), [cell.id]);
  assert.deepEqual(await ids([-1, -1, 0, 0]), [cell.id]);
  assert.deepEqual(await ids([11.250001, 0, 12, 6]), []);
  assert.deepEqual(await ids([5, 5, 5, 5]), [cell.id]);
  assert.deepEqual(await ids([179, 0, -179, 6]), [fiji.id]);
  assert.deepEqual((await ids([179, 0, 0, 6])).sort(), [cell.id, fiji.id].sort());
  assert.deepEqual((await ids([11.25, 0, -179, 6])).sort(), [cell.id, fiji.id].sort());
  assert.deepEqual(await ids([11.26, 0, -179, 6]), [fiji.id]);
  assert.deepEqual((await ids([179, 0, 10, 6])).sort(), [cell.id, fiji.id].sort());
});

test('unknown cloud cover meets no bound, and is not 0', async () => {
  const clear = tile({ scene: 's1', cloudCover: 0 });
  const unknown = tile({ scene: 's2', cloudCover: null });
  const index = indexOf([clear, unknown]);
  const found = async (params: FilterParams) => (await searchTiles(index, parseFilter(params))).ids;
  assert.deepEqual(await found({ maxCloud: 100 }), [clear.id]);
  assert.deepEqual(await found({ minCloud: 0 }), [clear.id]);
  assert.equal((await searchTiles(index, everything)).numberMatched, 2);
});

test('times match by overlap, ends included', async () => {
  const period = tile({ start: 1000, end: 2000 });
  const index = indexOf([period]);
  const found = async (start: number | null, end: number | null) =>
    (await searchTiles(index, { op: 't_intersects', property: 'datetime', period: [start, end] }))
      .numberMatched;
  assert.equal(await found(2000, null), 1);
  assert.equal(await found(2001, null), 0);
  assert.equal(await found(null, 1000), 1);
  assert.equal(await found(null, 999), 0);
  assert.equal(await found(1500, 1500), 1);
});

test('a geocode is exact, or with recurse a prefix', async () => {
  const records = ['9q8', '9q8y', '9q80', '9q9'].map((geocode) => tile({ geocode }));
  const index = indexOf(records);
  const found = async (params: FilterParams) => (await searchTiles(index, parseFilter(params))).ids;
  assert.deepEqual(await found({ geocode: '9q8' }), [records[0]!.id]);
  assert.equal((await found({ geocode: '9q8', recurse: true })).length, 3);
  assert.equal((await found({ geocode: '9q80', recurse: true })).length, 1);
});

test('forged tokens are refused', async () => {
  const index = indexOf(['s1', 's2', 's3'].map((scene) => tile({ scene })));
  const order = parseSortby('-eo:cloud_cover');
  const { next = '' } = await searchTiles(index, everything, { order, limit: 1 });
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const [digest, keys, start, collection, id] = JSON.parse(Buffer.from(next, 'base64url').toString());
  assert.equal((await searchTiles(index, everything, { order, limit: 5, token: next })).ids.length, 2);
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
    const forged = searchTiles(index, everything, { order, token });
    await assert.rejects(forged, { code: 'TW_QUERY_TOKEN' }, token);
  }
});

test('a token is valid only for its own filter and order', async () => {
  const index = indexOf(['s1', 's2', 's3'].map((scene) => tile({ scene })));
  const order = parseSortby('+created');
  const filter = parseFilter({ minCoverage: 10 });
  const token = (await searchTiles(index, filter, { order, limit: 1 })).next!;
  const other = { code: 'TW_QUERY_TOKEN_OTHER_SEARCH' };
  await assert.rejects(searchTiles(index, filter, { token }), other);
  await assert.rejects(searchTiles(index, filter, { order: parseSortby('-created'), token }), other);
  await assert.rejects(searchTiles(index, parseFilter({ minCoverage: 11 }), { order, token }), other);
  const same = parseFilter({ filter: 'pixel_coverage >= 10' });
  assert.equal(
    (await searchTiles(index, same, { order, token })).ids.length,
    2,
    'the same search in other words',
  );
});

test('unknown conditions remain unknown under NOT', async () => {
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
    assert.deepEqual((await searchTiles(index, parseFilter({ filter }))).ids, [known.id], filter);
  for (const filter of ['eo:cloud_cover IS NULL', 'platform IS NULL', 'start_datetime IS NULL'])
    assert.deepEqual((await searchTiles(index, parseFilter({ filter }))).ids, [unknown.id], filter);
  const either = parseFilter({ filter: 'eo:cloud_cover <= 10 OR pixel_coverage >= 0' });
  assert.equal((await searchTiles(index, either)).numberMatched, 2);
});

test('tiles without a value in the sort column come last, in both directions', async () => {
  const covers = [30, null, 10, 20];
  const records = covers.map((cloudCover, i) => tile({ scene: `s${i}`, cloudCover }));
  const index = indexOf(records);
  const walk = async (sortby: string) => {
    const { ids } = await searchTiles(index, everything, { order: parseSortby(sortby) });
    return ids.map((id) => records.find((record) => record.id === id)!.cloudCover);
  };
  assert.deepEqual(await walk('eo:cloud_cover'), [10, 20, 30, null]);
  assert.deepEqual(await walk('-properties.eo:cloud_cover'), [30, 20, 10, null]);
});

test('a filter that takes too much work for the number of rows is refused at once', async (t) => {
  const tooCostly = { code: 'TW_QUERY_TOO_COSTLY' };
  const conditions = (count: number): Filter =>
    and(Array.from({ length: count }, (_, i) => ({ op: 'like', property: 'id', pattern: `%_s${i % 10}_%` })));
  const dear = conditions(100);
  const sizeWithin: ColumnIndex['sizeWithin'] = ({ ids }) =>
    ids ? { rows: 10, cells: 10, names: 10 } : { rows: 1e7, cells: 1e5, names: 1e4 };
  const largeIndex = { sizeWithin } as ColumnIndex;
  assert.throws(() => checkWork(compileFilter(dear), largeIndex), tooCostly);
  checkWork(compileFilter(conditions(2)), largeIndex);
  checkWork(compileFilter(everything), largeIndex);
  checkWork(compileFilter(and([dear, { op: 'in', property: 'id', values: ['a'] }])), largeIndex);

  const index = indexOf(['s1', 's2'].map((scene) => tile({ scene })));
  checkWork(compileFilter(dear), index);
  assert.equal((await searchTiles(index, dear)).numberMatched, 0);
  const counts = { aggregations: 'total_count' };
  const visits = (['query', 'queryInTurns', 'forEach'] as const).map(
    (method) => t.mock.method(index, method).mock,
  );
  t.mock.method(index, 'sizeWithin', sizeWithin);
  await assert.rejects(searchTiles(index, dear), tooCostly);
  await assert.rejects(aggregate(index, dear, counts), tooCostly);
  assert.deepEqual(
    visits.map((visit) => visit.callCount()),
    [0, 0, 0],
  );
});

test('merged searches of several indexes return the same pages as one index', async () => {
  await fc.assert(
    fc.asyncProperty(
      manyTiles,
      filters,
      orders,
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 5 }),
      async (records, filter, order, limit, parts) => {
        const whole = indexOf(records);
        const indexes = Array.from({ length: parts }, (_, part) =>
          indexOf(records.filter((_, i) => (i * 7919) % parts === part)),
        );
        let token: string | undefined;
        do {
          const search = createSearch(filter, { order, limit, ...(token !== undefined && { token }) });
          const found = await Promise.all(
            indexes.map(
              async (index) => JSON.parse(JSON.stringify(await searchIndex(index, search))) as SearchHits,
            ),
          );
          const page = toSearchPage(mergeHits(found, search), search);
          assert.deepEqual(page, toSearchPage(await searchIndex(whole, search), search));
          token = page.next;
        } while (token !== undefined);
      },
    ),
    runs,
  );
});

test('LIKE on ids returns the same as a regular expression on each id', async () => {
  // Names with underscores, capitals, accents and words that look like cells.
  const names = fc.constantFrom('a', 'a_b', 'B', 'Ø_b', 'Straße', 's_q01_g9q8yy', '_', 'a_');
  const endings = fc.constantFrom('', '', '_split-1', '_Filled_Ø', '_', 'y', '%');
  const customIds = fc.constantFrom(undefined, undefined, 'Odd_%\\_ø', 'a_s', 'STRASSE_b_g9q8');
  // Different cells may have the same key.
  const sameKeys = fc.record({
    grid: fc.constantFrom('geohash', 'quadtile'),
    geocode: fc.constantFrom('0', '00', '000'),
  });
  const cell = fc.oneof(cells, sameKeys);
  const namedTiles = fc
    .record({ record: tiles, cell, collection: names, scene: names, ending: endings, customId: customIds })
    .map(({ record, cell, collection, scene, ending, customId }) => {
      const usual = tile({ ...record, ...cell, collection, scene, id: '' });
      return { ...usual, id: (customId ?? usual.id) + ending };
    });
  const folds = fc.constantFrom<('casei' | 'accenti')[]>([], ['casei'], ['accenti'], ['casei', 'accenti']);
  // Parts of an id, from any character on, become wildcards.
  const cut = fc.tuple(fc.nat(80), fc.nat(20), fc.constantFrom('%', '_', '%_', '%%', 'as many'));
  const conditions = fc.record({
    pick: fc.nat(),
    cuts: fc.array(cut, { maxLength: 3 }),
    folds,
    isFolded: fc.constantFrom(true, true, true, false),
    isNegated: fc.boolean(),
  });
  type Condition = typeof conditions extends fc.Arbitrary<infer C> ? C : never;
  const conditionOn = (ids: string[], { pick, cuts, folds, isFolded, isNegated }: Condition): Filter => {
    const parts = Array.from(ids[pick % ids.length]!, (character) => literalPattern(character));
    for (const [at, length, wildcard] of cuts) {
      const part = wildcard === 'as many' ? '_'.repeat(length) : wildcard;
      parts.splice(at % (parts.length + 1), length, part);
    }
    let text: TextExpression = { property: 'id' };
    let pattern = parts.join('');
    for (const op of folds) {
      text = { op, arg: text };
      if (isFolded) pattern = foldPattern(pattern, foldingFunctions[op]);
    }
    const condition: Filter =
      folds.length === 0 ? { op: 'like', property: 'id', pattern } : { op: 'match', text, pattern };
    return isNegated ? { op: 'not', arg: condition } : condition;
  };
  let [matched, unmatched] = [0, 0];
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(namedTiles, { minLength: 30, maxLength: 60, selector: ({ id }) => id }),
      fc.array(fc.array(conditions, { minLength: 1, maxLength: 3 }), { minLength: 12, maxLength: 12 }),
      fc.constantFrom('and', 'or'),
      fc.nat(20),
      async (records, some, op, tail) => {
        const index = indexOf(records, records.length - tail);
        const ids = records.map(({ id }) => id);
        index.remove(ids.filter((_, i) => i % 9 === 0));
        const present = records.filter((_, i) => i % 9 !== 0);
        for (const each of some) {
          const args = each.map((condition) => conditionOn(ids, condition));
          for (const filter of [...args, { op, args } as Filter]) {
            const expected = scan(present, filter);
            matched += expected.length;
            unmatched += present.length - expected.length;
            const page = await searchTiles(index, filter);
            assert.deepEqual(page.ids, expected, JSON.stringify(filter));
          }
        }
      },
    ),
    { ...runs, numRuns: 60 },
  );
  assert.ok(matched > 10_000 && unmatched > 10_000, `${matched} matched, ${unmatched} did not`);
});

/**
 * Calls `change`, and compacts the index, between turns of the event loop until a promise settles. Returns the number of these turns, and
 * that of the compactions that have ended by then.
 */
async function changeUntil(end: Promise<unknown>, index: ColumnIndex, change: () => void) {
  let isRunning = true;
  const stop = () => {
    isRunning = false;
  };
  end.then(stop, stop);
  let compactions = 0;
  const compact = async () => {
    for (; isRunning; await setImmediate()) {
      const isDue = index.needsCompaction;
      await index.compact();
      if (isDue && isRunning) compactions++;
    }
  };
  const compacting = compact();
  let turns = 0;
  for (await setImmediate(); isRunning; await setImmediate()) {
    const { changes } = index;
    change();
    if (index.changes > changes) turns++;
  }
  await compacting;
  return { turns, compactions };
}

test('a search in turns returns the tiles at its call, while others are added, replaced, removed and merged', async () => {
  const COUNT = 10_000;
  /** Tile `i`, and others with its id: some ids have a suffix, some do not follow from the other fields. */
  const make = (pool: TileRecord[], i: number, variant = 0): TileRecord => {
    const { grid, geocode, collection, scene } = pool[i % pool.length]!;
    const cell = { grid, geocode, collection, scene: `${scene}_${Math.floor(i / pool.length)}` };
    const usual = tile({ ...pool[(i * 31 + variant) % pool.length]!, ...cell, id: '' });
    if (i % 40 === 0) return { ...usual, id: `odd ${i}` };
    return i % 7 === 0 ? { ...usual, id: `${usual.id}_split-1` } : usual;
  };
  /** Conditions that take microseconds for each row, and are true for all rows or for none: folded ids are equal here. */
  const slow = (sign: '>=' | '<'): Filter[] => {
    const id: TextExpression = { property: 'id' };
    const args: [TextExpression, TextExpression] = [
      { op: 'casei', arg: id },
      { op: 'accenti', arg: id },
    ];
    return Array.from({ length: 2 }, () => ({ op: 'compare', kind: 'text', sign, args }));
  };
  const newestPeriod: Filter = {
    op: 't_intersects',
    property: 'datetime',
    period: [base + 5 * day, base + 20 * day],
  };
  const params = { aggregations: 'total_count,platform_frequency,collection_frequency,datetime_frequency' };
  let [turnsOfAll, compactionsOfAll] = [0, 0];
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      wideFilters.filter((filter) => compileFilter(filter).test !== undefined),
      orders,
      fc.constantFrom(0, 10, 1000, Infinity),
      fc.constantFrom(everything, newestPeriod),
      fc.boolean(),
      fc.nat(2),
      fc.nat(1000),
      async (seed, wide, order, limit, newest, hasGaps, age, offset) => {
        const samples = fc.sample(tiles, { seed, numRuns: 300 });
        const pool = [...new Map(samples.map((record) => [record.id, record])).values()];
        const index = new ColumnIndex({ maxTailRows: 1000, rowsPerStep: 10_000 });
        // Runs of different lengths, and a tail that still grows.
        const records = Array.from({ length: COUNT }, (_, i) => make(pool, i));
        index.load(records.slice(0, 6_000));
        index.add(records.slice(6_000, 9_500));
        index.compactTail();
        index.add(records.slice(9_500));
        if (hasGaps) index.remove(records.flatMap(({ id }, i) => (i % 50 === 1 ? [id] : [])));

        let seq = 0;
        let next = COUNT;
        index.startAt(seq);
        const change = () => {
          seq++;
          const some = (count: number, step: number) =>
            Array.from({ length: count }, (_, i) => (offset + seq * 997 + i * step) % next);
          const removed = some(60, 613).map((i) => make(pool, i).id);
          const replaced = some(60, 389).map((i) => make(pool, i, offset + seq));
          const added = Array.from({ length: 60 }, () => make(pool, next++));
          index.commit(seq, removed, [...replaced, ...added]);
          if (seq % 6 === 0) {
            // A change outside of commits drops the rows that are kept for reads as of earlier ones.
            index.remove(some(20, 211).map((i) => make(pool, i).id));
            index.add(some(20, 101).map((i) => make(pool, i, seq)));
          }
          if (seq % 10 === 0) index.compactTail();
        };
        if (hasGaps) for (let i = 0; i < 3; i++) change();

        const searches = [
          { filter: and([...slow('>='), wide]), order, limit },
          { filter: { op: 'or', args: [...slow('<'), wide] } as Filter, order, limit },
          { filter: newest, order: [], limit: Infinity },
        ];
        for (const { filter, ...options } of searches) {
          const copy = new ColumnIndex();
          copy.restore(index.images());
          const expectedCounts = await aggregate(copy, filter, params);
          // Some searches are as of an earlier commit.
          const at = Math.max(index.oldest, seq - age);
          const { test, isTimeOnly, ...bounds } = compileFilter(filter);
          const expected = index.asOf(at, () => index.query({ where: test, ...bounds, ...options }));
          const search = index.asOf(at, () => searchTiles(index, filter, options));
          const counting = aggregate(index, filter, params);
          const { turns, compactions } = await changeUntil(search, index, change);
          const { ids, numberMatched, next: token } = await search;
          assert.ok(isDeepStrictEqual(ids, expected.ids), `${ids.length} ids, not ${expected.ids.length}`);
          assert.equal(numberMatched, expected.matched);
          assert.equal(token !== undefined, expected.next !== undefined);
          assert.deepEqual(await counting, expectedCounts);
          const isOfAll = test && !bounds.ranges && !bounds.ids && !bounds.time;
          if (isOfAll) assert.ok(turns > 1, `${turns} turns`);
          turnsOfAll += turns;
          compactionsOfAll += compactions;
        }
      },
    ),
    // Smaller examples would take minutes.
    { seed: 42, numRuns: 8, endOnFailure: true },
  );
  assert.ok(compactionsOfAll > 0, `${compactionsOfAll} compactions in ${turnsOfAll} turns`);
});
