import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { geohash } from '../../src/grid/index.js';
import { aggregate, aggregations } from '../../src/query/index.js';
import { ColumnIndex, type TileRecord } from '../../src/storage/index.js';
import { matches } from './oracle.js';
import { tiles } from './tiles.js';
import { wideFilters } from './trees.js';

/** Number of tiles for each key; tiles without a key overflow. */
function tally(records: TileRecord[], keyOf: (record: TileRecord) => string | null) {
  const counts = new Map<string, number>();
  let overflow = 0;
  for (const record of records) {
    const key = keyOf(record);
    if (key === null) overflow++;
    else counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return { counts: Object.fromEntries([...counts].sort()), overflow };
}

function tenth(percent: number | null): string | null {
  if (percent === null) return null;
  const from = 10 * Math.min(9, Math.floor(Math.fround(percent) / 10));
  return `${from}-${from + 10}`;
}

const starts = { day: 'YYYY-MM-DD', month: 'YYYY-MM-01', year: 'YYYY-01-01' };

const keys = (interval: keyof typeof starts, precision: number) => ({
  collection_frequency: ({ collection }: TileRecord) => collection,
  platform_frequency: ({ platform }: TileRecord) => platform,
  cloud_cover_frequency: ({ cloudCover }: TileRecord) => tenth(cloudCover),
  pixel_coverage_frequency: ({ coverage }: TileRecord) => tenth(coverage),
  grid_geohash_frequency: ({ grid, geocode }: TileRecord) =>
    grid === 'geohash' && geocode.length >= precision ? geocode.slice(0, precision) : null,
  datetime_frequency: ({ start }: TileRecord) => {
    const day = new Date(start).toISOString().slice(0, 10);
    return `${day.slice(0, starts[interval].lastIndexOf('Y') + 1)}${starts[interval]
      .slice(4)
      .replace('MM', day.slice(5, 7))
      .replace('DD', day.slice(8))}T00:00:00.000Z`;
  },
});

test('every count is the same as in a scan of all records', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(tiles, { minLength: 20, maxLength: 80, selector: ({ id }) => id }),
      wideFilters,
      fc.constantFrom('day', 'month', 'year'),
      fc.integer({ min: 1, max: 7 }),
      async (records, filter, interval, precision) => {
        const index = new ColumnIndex();
        index.load(records.slice(10));
        index.add(records.slice(0, 10));
        const found = records.filter((record) => matches(filter, record));
        const result = await aggregate(index, filter, {
          aggregations: aggregations.map(({ name }) => name),
          datetime_frequency_interval: interval,
          grid_geohash_frequency_precision: precision,
        });
        assert.equal(result.length, aggregations.length);
        for (const one of result) {
          if ('buckets' in one) {
            const keyOf = keys(interval, precision)[one.name as keyof ReturnType<typeof keys>];
            const counts = one.buckets.flatMap(({ key, frequency }) =>
              frequency > 0 ? [[key, frequency]] : [],
            );
            const { overflow } = one;
            assert.deepEqual(
              { counts: Object.fromEntries(counts.sort()), overflow },
              tally(found, keyOf),
              one.name,
            );
          } else if (one.name === 'total_count') {
            assert.equal(one.value, found.length);
          } else {
            const times = found
              .map(({ start, end }) => (one.name === 'datetime_min' ? start : end))
              .sort((a, b) => a - b);
            const time = one.name === 'datetime_min' ? times[0] : times.at(-1);
            assert.equal(one.value, time === undefined ? null : new Date(time).toISOString());
          }
        }
      },
    ),
    { seed: 42, numRuns: 80 },
  );
});

test('times far apart are counted, by years without a given interval', async () => {
  const index = new ColumnIndex();
  const years = ['1700', '2024', '9999'];
  const [base] = fc.sample(tiles, { seed: 1, numRuns: 1 });
  index.load(years.map((year) => ({ ...base!, id: year, start: Date.parse(year), end: Date.parse(year) })));
  const [result] = await aggregate(index, { op: 'and', args: [] }, { aggregations: 'datetime_frequency' });
  assert.ok(result && 'buckets' in result);
  assert.deepEqual(
    result.buckets.map(({ key, frequency }) => [key, frequency]),
    years.map((year) => [`${year}-01-01T00:00:00.000Z`, 1]),
  );
});

test('more cells than can be counted at once are refused, and a smaller precision is not', async () => {
  const index = new ColumnIndex();
  const [base] = fc.sample(tiles, { seed: 1, numRuns: 1 });
  const { span } = geohash.key(geohash.geocode(0, 6));
  index.load(
    Array.from({ length: 50_001 }, (_, i) => ({
      ...base!,
      ...{ id: `t${i}`, grid: 'geohash' as const, geocode: geohash.geocode(i * span, 6) },
    })),
  );
  const count = (precision: number) =>
    aggregate(
      index,
      { op: 'and', args: [] },
      {
        ...{ aggregations: 'grid_geohash_frequency', grid_geohash_frequency_precision: precision },
      },
    );
  await assert.rejects(count(6), { code: 'TW_QUERY_TOO_MANY_CELLS' });
  const [result] = await count(5);
  assert.ok(result && 'buckets' in result);
  assert.equal(
    result.buckets.reduce((sum, { frequency }) => sum + frequency, 0),
    50_001,
  );
});
