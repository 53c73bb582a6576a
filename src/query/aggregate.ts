/** Counts over the tiles that match a filter: the aggregation extension of STAC APIs, 0.3. */
import { type Grid, type GridName, geohash, gridByName, grids } from '../grid/index.js';
import type { ColumnIndex, IndexRun, RunFilter } from '../storage/index.js';
import { documented } from '../utils/json-schema.js';
import { compileFilter } from './compile.js';
import { badAggregation, tooManyCells } from './errors.js';
import type { Filter } from './filter.js';
import { andTests, checkWork } from './plan.js';
import { visitRuns } from './search.js';

interface Bucket {
  key: string;
  data_type: 'string' | 'datetime' | 'numeric';
  frequency: number;
  /** Ends of a range. The upper end is excluded, except in the last range. */
  from?: number;
  to?: number;
}

interface Counted {
  buckets: Bucket[];
  /** Number of tiles in no bucket. */
  overflow: number;
}

/** Counts by name, or by the number of a range, a day or a cell. Plain JSON; counts of disjoint sets of tiles can be added. */
interface Counts {
  counts: [key: string | number, count: number][];
  /** Number of tiles without a key. */
  overflow: number;
}

interface Counter {
  add(row: number): void;
  counts(): Counts;
}

/** Adds the counts of disjoint sets of tiles. */
function addCounts(parts: Counts[]): Counts {
  if (parts.length === 1) return parts[0]!;
  const sums = new Map<string | number, number>();
  for (const [key, count] of parts.flatMap(({ counts }) => counts))
    sums.set(key, (sums.get(key) ?? 0) + count);
  return { counts: [...sums], overflow: parts.reduce((sum, { overflow }) => sum + overflow, 0) };
}

type TimeInterval = 'day' | 'month' | 'year';

const DAY_MS = 86_400_000;
/** If no interval is given, more days than this are counted by months, and more than 12 times as many by years. */
const MAX_DAY_BUCKETS = 100;
/** Maximum number of buckets of cells in an answer; those with the most tiles are kept. */
const MAX_CELLS = 10_000;
/** Maximum number of cells that are counted: the end of the counting is one turn of the event loop. */
const MAX_COUNTED_CELLS = 50_000;

/** Counts by a name that rows have as a code. Rows without a name overflow. */
function nameCounter(codes: ArrayLike<number>, names: readonly (string | null)[]): Counter {
  const found = new Float64Array(names.length);
  return {
    add: (row) => {
      found[codes[row]!]!++;
    },
    counts: () => {
      const counts: Counts = { counts: [], overflow: 0 };
      for (const [code, name] of names.entries()) {
        if (name === null) counts.overflow = found[code]!;
        else if (found[code]! > 0) counts.counts.push([name, found[code]!]);
      }
      return counts;
    },
  };
}

function nameBuckets({ counts, overflow }: Counts): Counted {
  const buckets = counts.map(
    ([key, frequency]): Bucket => ({ key: `${key}`, data_type: 'string', frequency }),
  );
  return { buckets: buckets.sort(byKey), overflow };
}

/** Counts by ten ranges of ten percent each. Rows without a value overflow. */
function percentCounter(values: Float32Array): Counter {
  const found = new Float64Array(10);
  let overflow = 0;
  return {
    add: (row) => {
      const value = values[row]!;
      if (Number.isNaN(value)) overflow++;
      else found[Math.min(9, Math.floor(value / 10))]!++;
    },
    counts: () => ({ counts: [...found.entries()], overflow }),
  };
}

function percentBuckets({ counts, overflow }: Counts): Counted {
  const found = new Map(counts);
  const buckets = Array.from({ length: 10 }, (_, i): Bucket => {
    const from = 10 * i;
    const to = from + 10;
    return { key: `${from}-${to}`, data_type: 'numeric', frequency: found.get(i) ?? 0, from, to };
  });
  return { buckets, overflow };
}

/** Days before and after the day of the first tile that are counted in an array: a hundred years. */
const ARRAY_DAYS = 36_525;

/** Counts by the day (in UTC) in which tiles start, numbered from 1970. */
function dayCounter(start: Float64Array): Counter {
  const near = new Float64Array(2 * ARRAY_DAYS);
  const far = new Map<number, number>();
  let firstDay = NaN;
  return {
    add: (row) => {
      const day = Math.floor(start[row]! / DAY_MS);
      if (Number.isNaN(firstDay)) firstDay = day - ARRAY_DAYS;
      const index = day - firstDay;
      if (index >= 0 && index < near.length) near[index]!++;
      else far.set(day, (far.get(day) ?? 0) + 1);
    },
    counts: () => {
      const counts = [...far];
      for (const [index, count] of near.entries()) if (count > 0) counts.push([firstDay + index, count]);
      return { counts, overflow: 0 };
    },
  };
}

/** Buckets of days, months or years. */
function timeBuckets({ counts: days }: Counts, interval: TimeInterval | undefined): Counted {
  const unit = interval ?? chooseInterval(days.map(([day]) => Number(day)));
  const counts = new Map<string, number>();
  for (const [day, count] of days) {
    const key = startOf(Number(day), unit);
    counts.set(key, (counts.get(key) ?? 0) + count);
  }
  const buckets = Array.from(
    counts,
    ([key, frequency]): Bucket => ({ key, data_type: 'datetime', frequency }),
  );
  return { buckets: buckets.sort(byKey), overflow: 0 };
}

function chooseInterval(days: number[]): TimeInterval {
  const span = days.reduce((a, b) => Math.max(a, b), 0) - days.reduce((a, b) => Math.min(a, b), Infinity);
  if (!(span > MAX_DAY_BUCKETS)) return 'day';
  return span > 12 * MAX_DAY_BUCKETS ? 'year' : 'month';
}

function startOf(day: number, interval: TimeInterval): string {
  const date = new Date(day * DAY_MS);
  if (interval !== 'day') date.setUTCDate(1);
  if (interval === 'year') date.setUTCMonth(0);
  return date.toISOString();
}

/** Counts by the cells of one precision that contain the tiles' cells. Tiles of larger cells, or of another grid, overflow. */
function cellCounter({ columns }: IndexRun, name: GridName, precision: number): Counter {
  const code = grids.findIndex((grid) => grid.name === name);
  const span = spanOf(grids[code]!, precision);
  const found = new Map<number, number>();
  let overflow = 0;
  // Rows arrive cell by cell: those of one cell are counted together.
  let cell = -1;
  let run = 0;
  const flush = () => {
    if (run > 0) found.set(cell, (found.get(cell) ?? 0) + run);
    if (found.size > MAX_COUNTED_CELLS) throw tooManyCells(precision, MAX_COUNTED_CELLS);
    run = 0;
  };
  return {
    add: (row) => {
      if (columns.grid[row] !== code || columns.precision[row]! < precision) {
        overflow++;
        return;
      }
      const key = columns.key[row]!;
      if (key < cell * span || key >= (cell + 1) * span) {
        flush();
        cell = Math.floor(key / span);
      }
      run++;
    },
    counts: () => {
      flush();
      return { counts: [...found], overflow };
    },
  };
}

function cellBuckets({ counts, overflow }: Counts, name: GridName, precision: number): Counted {
  const grid = gridByName(name);
  const span = spanOf(grid, precision);
  if (counts.length > MAX_COUNTED_CELLS) throw tooManyCells(precision, MAX_COUNTED_CELLS);
  const fullest = (counts as [number, number][]).sort(([a, n], [b, m]) => m - n || a - b);
  const buckets = fullest.slice(0, MAX_CELLS).map(([cell, frequency]): Bucket => {
    return { key: grid.geocode(cell * span, precision), data_type: 'string', frequency };
  });
  const left = fullest.slice(MAX_CELLS).reduce((sum, [, count]) => sum + count, 0);
  return { buckets: buckets.sort(byKey), overflow: overflow + left };
}

const spanOf = (grid: Grid, precision: number) => grid.key(grid.geocode(0, precision)).span;

const byKey = (a: Bucket, b: Bucket) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);

export interface AggregationParams {
  /** Separated by commas in text. */
  aggregations?: string | string[];
  /** Interval of `datetime_frequency`; by default it depends on the range of times. */
  datetime_frequency_interval?: string;
  /** Length of the geohashes of `grid_geohash_frequency`. */
  grid_geohash_frequency_precision?: number;
}

export type Aggregation = { name: string; data_type: string } & (
  | { value: number | string | null }
  | ({ data_type: 'frequency_distribution' } & Counted)
);

const INTERVALS = ['day', 'month', 'year'];
const DEFAULT_PRECISION = 3;

interface Distribution {
  counter(rows: IndexRun, params: AggregationParams): Counter;
  buckets(counts: Counts, params: AggregationParams): Counted;
}

/** The aggregations that have buckets. */
const DISTRIBUTIONS: Record<string, Distribution> = {
  collection_frequency: {
    counter: ({ columns, collections }) => nameCounter(columns.collection, collections.names),
    buckets: nameBuckets,
  },
  platform_frequency: {
    counter: ({ columns, platforms }) => nameCounter(columns.platform, platforms.names),
    buckets: nameBuckets,
  },
  datetime_frequency: {
    counter: ({ columns }) => dayCounter(columns.start),
    buckets: (counts, params) => timeBuckets(counts, intervalOf(params.datetime_frequency_interval)),
  },
  cloud_cover_frequency: {
    counter: ({ columns }) => percentCounter(columns.cloud),
    buckets: percentBuckets,
  },
  pixel_coverage_frequency: {
    counter: ({ columns }) => percentCounter(columns.coverage),
    buckets: percentBuckets,
  },
  grid_geohash_frequency: {
    counter: (rows, params) => cellCounter(rows, 'geohash', geohashPrecision(params)),
    buckets: (counts, params) => cellBuckets(counts, 'geohash', geohashPrecision(params)),
  },
};

/** The aggregations and the types of their results. */
const AGGREGATION_TYPES: Record<string, string> = {
  total_count: 'integer',
  datetime_min: 'datetime',
  datetime_max: 'datetime',
  ...Object.fromEntries(Object.keys(DISTRIBUTIONS).map((name) => [name, 'frequency_distribution'])),
};

const NAME_PATTERN = `(${Object.keys(AGGREGATION_TYPES).join('|')})`;

/** JSON Schema of the parameters in a URL. */
export const aggregationQuery = {
  aggregations: documented({ type: 'string' }, { pattern: `^(${NAME_PATTERN}(,${NAME_PATTERN})*)?$` }),
  datetime_frequency_interval: documented({ type: 'string' }, { enum: INTERVALS }),
  grid_geohash_frequency_precision: documented(
    { type: 'integer' },
    { minimum: geohash.minPrecision, maximum: geohash.maxPrecision },
  ),
};

/** JSON Schema of the parameters in a body. */
export const aggregationBody = {
  ...aggregationQuery,
  aggregations: { type: 'array', items: documented({ type: 'string' }, { pattern: `^${NAME_PATTERN}$` }) },
};

export const aggregations = Object.entries(AGGREGATION_TYPES).map(([name, data_type]) => ({
  name,
  data_type,
}));

/** Counts of some tiles. Plain JSON. */
export interface AggregationCounts {
  total: number;
  /** Milliseconds since 1970; null if there are no tiles. */
  first: number | null;
  last: number | null;
  counts: Record<string, Counts>;
}

/** The requested aggregations over the tiles that match a filter, in the requested order. Throws TW_QUERY_AGGREGATION. */
export async function aggregate(
  index: ColumnIndex,
  filter: Filter,
  params: AggregationParams,
): Promise<Aggregation[]> {
  return toAggregations(await countTiles(index, filter, params), params);
}

/**
 * Counts for the requested aggregations, of the rows that pass `only`. Throws TW_QUERY_AGGREGATION, TW_QUERY_TOO_COSTLY,
 * TW_QUERY_TOO_MANY_CELLS, and the reason of the signal.
 */
export async function countTiles(
  index: ColumnIndex,
  filter: Filter,
  params: AggregationParams,
  { only, signal }: { only?: RunFilter | undefined; signal?: AbortSignal | undefined } = {},
): Promise<AggregationCounts> {
  const names = namesOf(params.aggregations);
  intervalOf(params.datetime_frequency_interval);
  geohashPrecision(params);
  const plan = compileFilter(filter);
  checkWork(plan, index);
  const { test, ...bounds } = plan;
  const selection = { where: andTests(test, only), ...bounds };
  return mergeAggregationCounts(
    await visitRuns(index, selection, (rows) => countRun(rows, names, params), signal),
  );
}

/** Counts the rows of one run. */
function countRun(rows: IndexRun, names: string[], params: AggregationParams) {
  const counters = new Map<string, Counter>();
  for (const name of names) {
    const counter = DISTRIBUTIONS[name]?.counter(rows, params);
    if (counter) counters.set(name, counter);
  }
  const { start, end } = rows.columns;
  const adders = [...counters.values()].map((counter) => counter.add);
  let total = 0;
  let first = Infinity;
  let last = -Infinity;
  return {
    add: (row: number) => {
      total++;
      if (start[row] < first) first = start[row];
      if (end[row] > last) last = end[row];
      for (let i = 0; i < adders.length; i++) adders[i]!(row);
    },
    result: (): AggregationCounts => ({
      total,
      first: total > 0 ? first : null,
      last: total > 0 ? last : null,
      counts: Object.fromEntries(Array.from(counters, ([name, counter]) => [name, counter.counts()])),
    }),
  };
}

/** Merges the counts of disjoint sets of tiles. */
export function mergeAggregationCounts(parts: AggregationCounts[]): AggregationCounts {
  const [one] = parts;
  if (one && parts.length === 1) return one;
  const names = new Set(parts.flatMap(({ counts }) => Object.keys(counts)));
  const minimum = (a: number | null, b: number | null) => (a === null || (b !== null && b < a) ? b : a);
  const maximum = (a: number | null, b: number | null) => (a === null || (b !== null && b > a) ? b : a);
  return {
    total: parts.reduce((sum, { total }) => sum + total, 0),
    first: parts.map(({ first }) => first).reduce(minimum, null),
    last: parts.map(({ last }) => last).reduce(maximum, null),
    counts: Object.fromEntries(
      Array.from(names, (name) => [name, addCounts(parts.flatMap(({ counts }) => counts[name] ?? []))]),
    ),
  };
}

/** The requested aggregations, from their counts. Throws TW_QUERY_AGGREGATION. */
export function toAggregations(
  { total, first, last, counts }: AggregationCounts,
  params: AggregationParams,
): Aggregation[] {
  const iso = (time: number | null) => (time === null ? null : new Date(time).toISOString());
  const values: Record<string, number | string | null> = {
    total_count: total,
    datetime_min: iso(first),
    datetime_max: iso(last),
  };
  return namesOf(params.aggregations).map((name): Aggregation => {
    const counted = DISTRIBUTIONS[name]?.buckets(counts[name] ?? { counts: [], overflow: 0 }, params);
    return counted
      ? { name, data_type: 'frequency_distribution', ...counted }
      : { name, data_type: AGGREGATION_TYPES[name]!, value: values[name]! };
  });
}

function namesOf(given: string | string[] = []): string[] {
  const names = typeof given === 'string' ? given.split(',').filter((name) => name !== '') : given;
  for (const name of names) {
    if (!Object.hasOwn(AGGREGATION_TYPES, name))
      throw badAggregation(
        `the aggregation "${name}"`,
        `one or more of ${Object.keys(AGGREGATION_TYPES).join(', ')}`,
      );
  }
  return [...new Set(names)];
}

function intervalOf(given: string | undefined): TimeInterval | undefined {
  if (given === undefined || INTERVALS.includes(given)) return given as TimeInterval | undefined;
  throw badAggregation(`datetime_frequency_interval "${given}"`, INTERVALS.join(', '));
}

function geohashPrecision({
  grid_geohash_frequency_precision: given = DEFAULT_PRECISION,
}: AggregationParams): number {
  const { minPrecision, maxPrecision } = geohash;
  if (Number.isInteger(given) && given >= minPrecision && given <= maxPrecision) return given;
  throw badAggregation(
    `grid_geohash_frequency_precision ${given}`,
    `a whole number from ${minPrecision} to ${maxPrecision}`,
  );
}
