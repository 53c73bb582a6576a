/** Counts over the tiles that match a filter: the aggregation extension of STAC APIs, 0.3. */
import { geohash } from '../../grid/index.js';
import type { ColumnIndex, IndexRun, RunFilter } from '../../storage/index.js';
import { documented } from '../../utils/json-schema.js';
import { andTests, compileFilter, withTimeout } from '../compile/index.js';
import { badAggregation } from '../errors.js';
import type { Filter } from '../filter/index.js';
import { visitRuns } from '../query-index-runs.js';
import {
  addCounts,
  type Counted,
  type Counter,
  type Counts,
  cellBuckets,
  cellCounter,
  dayCounter,
  nameBuckets,
  nameCounter,
  percentBuckets,
  percentCounter,
  type TimeInterval,
  timeBuckets,
} from './aggregate-counts.js';

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

const NAME = `(${Object.keys(AGGREGATION_TYPES).join('|')})`;

/** JSON Schema of the parameters in a URL. */
export const aggregationQuery = {
  aggregations: documented({ type: 'string' }, { pattern: `^(${NAME}(,${NAME})*)?$` }),
  datetime_frequency_interval: documented({ type: 'string' }, { enum: INTERVALS }),
  grid_geohash_frequency_precision: documented(
    { type: 'integer' },
    { minimum: geohash.minPrecision, maximum: geohash.maxPrecision },
  ),
};

/** JSON Schema of the parameters in a body. */
export const aggregationBody = {
  ...aggregationQuery,
  aggregations: { type: 'array', items: documented({ type: 'string' }, { pattern: `^${NAME}$` }) },
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
export function aggregate(index: ColumnIndex, filter: Filter, params: AggregationParams): Aggregation[] {
  return toAggregations(countTiles(index, filter, params), params);
}

/** Counts for the requested aggregations, of the rows that pass `only`. Throws TW_QUERY_AGGREGATION, TW_QUERY_TOO_SLOW. */
export function countTiles(
  index: ColumnIndex,
  filter: Filter,
  params: AggregationParams,
  only?: RunFilter,
): AggregationCounts {
  const names = namesOf(params.aggregations);
  intervalOf(params.datetime_frequency_interval);
  geohashPrecision(params);
  const { test, ...bounds } = withTimeout(compileFilter(filter));
  return mergeAggregationCounts(
    visitRuns(index, { where: andTests(test, only), ...bounds }, (rows) => countRun(rows, names, params)),
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
