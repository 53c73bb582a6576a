/** The bounds of searches: no wider than necessary, and wide enough for all matching tiles. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cellBbox, gridByName } from '../../src/grid/index.js';
import { compileFilter } from '../../src/query/compile.js';
import { type Filter, parseFilter, searchTiles } from '../../src/query/index.js';
import { type TemporalOp, temporalRelations } from '../../src/query/operators.js';
import { ColumnIndex, type TileRecord } from '../../src/storage/index.js';
import { scan } from './scan.js';
import { base, day, tile } from './tiles.js';

/** '0' and '0000' are cells of both grids, with equal keys. */
const CELLS = {
  geohash: ['0', '0000', '9q8y', '9q8z', '9q9', '9q9p', 's000', 'u33d', 'u33e'],
  quadtile: ['0', '0000', '023', '0230102', '0230103', '12020', '3'],
};
const DAYS = 6;

/** Some cells at noon of some days, created in the reverse order. */
const records: TileRecord[] = (['geohash', 'quadtile'] as const).flatMap((grid) =>
  CELLS[grid].flatMap((geocode) =>
    Array.from({ length: DAYS }, (_, i) => {
      const start = base + (i + 0.5) * day;
      const createdAt = base + (DAYS - i) * day;
      return tile({ grid, geocode, scene: `s${i}`, start, end: start, createdAt, cloudCover: i });
    }),
  ),
);
const index = new ColumnIndex();
index.load(records);

/** The tiles that match a filter, and the number of rows that are tested. */
function look(filter: Filter) {
  const { test, ...bounds } = compileFilter(filter);
  let rows = 0;
  const { ids } = index.query({
    ...bounds,
    where:
      test &&
      ((run) => {
        const passes = test(run);
        return (row) => {
          rows++;
          return passes(row);
        };
      }),
  });
  return { ids, rows };
}

const [first, second] = [records[20]!.id, records[70]!.id];
const midnight = (days: number) => new Date(base + days * day).toISOString();
const date = (days: number) => `DATE('${midnight(days).slice(0, 10)}')`;
const between = `INTERVAL('${midnight(1)}','${midnight(3)}')`;

test('a search tests only matching rows, if cells, ids or times determine them', () => {
  for (const text of [
    "geocode = '9q8y'",
    "geocode IN ('9q8y', 'u33d', 'none')",
    "geocode LIKE '9q8%'",
    "geocode LIKE '9q%' AND geocode LIKE '9q9%'",
    "geocode = '9q8y' OR geocode LIKE 'u3%'",
    "geocode = '9q8y' AND geocode IN ('9q8z', 'u33d')",
    "geocode LIKE '9q8%' AND \"grid:code\" IN ('GEOHASH-9q8y', 'GEOHASH-9q8z', 'GEOHASH-s000')",
    "(geocode LIKE '9q8%' OR geocode LIKE 'u3%') AND (geocode LIKE '9q8z%' OR geocode LIKE 'u33%')",
    "(geocode LIKE 'u3%' OR geocode LIKE '9q9%' OR geocode LIKE '9q8%') AND (geocode = 'u33e' OR geocode LIKE '9q%')",
    "geocode IN ('u33d', '9q9p', '9q8y', '0230103', '0230102') AND geocode IN ('0230103', '9q9p', 's000', '9q8y')",
    '"grid:code" = \'GEOHASH-9q8y\'',
    "\"grid:code\" IN ('QUADTILE-0230102', 'GEOHASH-u33e')",
    "NOT geocode <> '9q8y'",
    "geocode = 'no cell'",
    "geocode LIKE 'no cell%'",
    `id = '${first}'`,
    `id IN ('${first}', '${second}', 'none')`,
    `id = '${first}' OR id = '${second}'`,
    `id = '${first}' AND id IN ('${first}', '${second}')`,
    `id = '${first}' AND id = '${second}'`,
    `id IN ('${first}', '${second}') AND scene LIKE 's%'`,
    "S_INTERSECTS(geometry, POINT(13.4 52.5)) AND geocode LIKE 'u%'",
    "NOT S_DISJOINT(geometry, POINT(13.4 52.5)) AND geocode LIKE 'u%'",
    `datetime = ${date(2)}`,
    `datetime < ${date(2)}`,
    `datetime <= ${date(2)}`,
    `datetime > ${date(2)}`,
    `datetime >= ${date(2)}`,
    `NOT datetime <> ${date(2)}`,
    `NOT datetime >= ${date(2)}`,
    `datetime > ${date(1)} AND datetime < ${date(4)}`,
    `datetime = ${date(1)} OR datetime = ${date(2)}`,
    `datetime IN (${date(2)}, ${date(1)})`,
    `T_AFTER(datetime, ${date(2)})`,
    `T_BEFORE(datetime, ${date(2)})`,
    `T_BEFORE(${date(2)}, datetime)`,
    `T_DURING(datetime, ${between})`,
    `T_INTERSECTS(datetime, ${between})`,
    `NOT T_DISJOINT(datetime, ${between})`,
    `T_INTERSECTS(datetime, INTERVAL('..', '${midnight(1)}'))`,
    `T_DURING(INTERVAL(datetime, datetime), ${between})`,
    `T_CONTAINS(${between}, INTERVAL(datetime, datetime))`,
    `T_AFTER(INTERVAL(datetime, datetime), INTERVAL('..', '${midnight(1)}'))`,
    `T_BEFORE(INTERVAL(datetime, datetime), INTERVAL('${midnight(2)}', '..'))`,
    `geocode LIKE '9q%' AND datetime = ${date(2)}`,
    'FALSE',
    'NOT TRUE',
    'id IS NULL',
    'NOT id IS NOT NULL AND scene IS NOT NULL',
    '(id IS NULL) IS NULL',
    "FALSE OR geocode = '9q8y'",
  ]) {
    const filter = parseFilter({ filter: text });
    const expected = scan(records, filter);
    const { ids, rows } = look(filter);
    assert.deepEqual(ids, expected, text);
    assert.equal(rows, expected.length, text);
  }
});

test('an interval of the two ends of a tile has the bounds of its time', () => {
  for (const first of ['datetime', 'start_datetime'])
    for (const last of ['datetime', 'end_datetime'])
      for (const text of [
        `T_DURING(INTERVAL(${first}, ${last}), ${between})`,
        `T_CONTAINS(${between}, INTERVAL(${first}, ${last}))`,
      ])
        assert.equal(look(parseFilter({ filter: text })).rows, (2 * records.length) / DAYS, text);
});

test('a filter that every row matches has no test', () => {
  for (const text of [
    'TRUE',
    'NOT FALSE',
    'S_INTERSECTS(geometry, BBOX(-180,-90,180,90))',
    'id IS NOT NULL',
    'TRUE OR eo:cloud_cover < 5',
    'NOT (id IS NULL) IS NULL',
  ])
    assert.deepEqual(compileFilter(parseFilter({ filter: text })), {}, text);
});

test('half of the Earth is not the entire Earth', async () => {
  const halves: number[][] = [
    [-180, -90, 180, 0],
    [-180, 0, 180, 90],
    [-180, -90, 0, 90],
    [0, -90, 180, 90],
  ];
  for (const bbox of halves) {
    const filter = parseFilter({ bbox });
    const found = scan(records, filter);
    assert.ok(found.length < records.length);
    assert.deepEqual((await searchTiles(index, filter)).ids, found, `${bbox}`);
  }
});

test('a cell is not confused with one of the other grid with the same key', async () => {
  const both = records.filter(({ geocode, scene }) => geocode === '0' && scene === 's0');
  const [geohash, quadtile] = both.map(({ id }) => id);
  const few = new ColumnIndex();
  few.load(both);
  for (const [text, found] of [
    ["geocode = '0'", both.map(({ id }) => id)],
    ['"grid:code" LIKE \'GEO%\'', [geohash]],
    ['"grid:code" > \'H\'', [quadtile]],
    ['"grid:code" <> \'QUADTILE-0\'', [geohash]],
    ['S_DISJOINT(geometry, POINT(-90 60))', [geohash]],
    ['NOT S_DISJOINT(geometry, POINT(-90 60))', [quadtile]],
    ['S_WITHIN(geometry, BBOX(-180,-90,-100,-40))', [geohash]],
  ] as [string, string[]][]) {
    const { ids } = await searchTiles(few, parseFilter({ filter: text }));
    assert.deepEqual(ids.sort(), found.sort(), text);
  }
});

test('a list of times matches each of them, even if they overlap or the list is empty', async () => {
  const times = records.map(({ createdAt }) => createdAt).sort((a, b) => a - b);
  const [from, to] = [times[0]!, times.at(-1)!];
  for (const periods of [
    [],
    [
      [from, to],
      [from + 1, from + 2],
      [from + 3, from + 4],
    ],
    [
      [from + 3, to - 1],
      [from, from + 1],
      [from, from],
    ],
    [
      [to, to],
      [from, from],
      [from + 2 * day, from + 3 * day - 1],
    ],
  ] as [number, number][][])
    for (const property of ['created', 'datetime'] as const) {
      const filter: Filter = { op: 'in', property, periods };
      for (const one of [filter, { op: 'not', arg: filter } as Filter])
        assert.deepEqual((await searchTiles(index, one)).ids, scan(records, one), JSON.stringify(one));
    }
});

/** Conditions with bounds, with values of a tile. */
const bounded: fc.Arbitrary<Filter> = fc
  .record({
    one: fc.constantFrom(...records),
    other: fc.constantFrom(...records),
    kind: fc.nat(10),
    sign: fc.constantFrom('=', '<>', '<', '<=', '>', '>='),
    relation: fc.constantFrom(...(Object.keys(temporalRelations) as TemporalOp[])),
    time: fc.constantFrom('datetime', 'start_datetime', 'end_datetime', 'created'),
    end: fc.constantFrom('datetime', 'start_datetime', 'end_datetime', 'created'),
    cut: fc.nat(3),
    days: fc.nat(2),
  })
  .map(({ one, other, kind, sign, relation, time, end, cut, days }): Filter => {
    const code = ({ grid, geocode }: TileRecord) => `${grid.toUpperCase()}-${geocode}`;
    const property = time as 'datetime';
    const from = one.start - day / 2;
    const period: [number, number] = [from, from + days * day];
    const own = { interval: [{ property }, { property: end as 'datetime' }] } as const;
    const [west, south] = cellBbox(gridByName(one.grid), one.geocode);
    switch (kind) {
      case 0:
        return { op: '=', property: 'geocode', value: one.geocode };
      case 1:
        return { op: 'like', property: 'geocode', pattern: `${one.geocode.slice(0, cut + 1)}%` };
      case 2:
        return { op: 'in', property: 'geocode', values: [one.geocode, other.geocode].slice(cut % 2) };
      case 3:
        return { op: 'in', property: 'grid:code', values: [code(one), code(other)].slice(cut % 2) };
      case 4:
        return { op: 'in', property: 'id', values: [one.id, other.id].slice(cut % 2) };
      case 5:
        return { op: sign as '=', property, period: [from, from + day - 1] };
      case 6:
        return { op: relation, property, period: [cut === 0 ? null : from, cut === 1 ? null : period[1]] };
      case 7:
        return { op: 'periods', relation, args: [own as never, { interval: period }] };
      case 8:
        return { op: 'periods', relation, args: [{ interval: period }, own as never] };
      case 9:
        return { op: 'in', property, periods: [period, [other.start, other.start]] };
      default:
        return { op: 's_intersects', shape: { type: 'Point', coordinates: [west, south] } };
    }
  });

const trees = fc.letrec<{ tree: Filter }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 2 },
    { weight: 2, arbitrary: bounded },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constantFrom('and', 'or'),
        args: fc.array(tie('tree'), { minLength: 2, maxLength: 3 }),
      }) as fc.Arbitrary<Filter>,
    },
    { weight: 1, arbitrary: tie('tree').map((arg): Filter => ({ op: 'not', arg })) },
  ),
})).tree;

test('bounds exclude no matching tile, however conditions are combined', async () => {
  let found = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(trees, { minLength: 20, maxLength: 20 }), async (filters) => {
      for (const filter of filters) {
        const expected = scan(records, filter);
        if (expected.length < records.length) found += expected.length;
        assert.deepEqual((await searchTiles(index, filter)).ids, expected, JSON.stringify(filter));
      }
    }),
    { seed: 42, numRuns: 40 },
  );
  assert.ok(found > 1000, `only ${found} tiles were found in all`);
});
