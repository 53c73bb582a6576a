/** Counters of rows, and the buckets made from their counts. */
import { type Grid, type GridName, gridByName, grids } from '../../grid/index.js';
import type { IndexRun } from '../../storage/index.js';

export interface Bucket {
  key: string;
  data_type: 'string' | 'datetime' | 'numeric';
  frequency: number;
  /** Ends of a range. The upper end is excluded, except in the last range. */
  from?: number;
  to?: number;
}

export interface Counted {
  buckets: Bucket[];
  /** Number of tiles in no bucket. */
  overflow: number;
}

/** Counts by name, or by the number of a range, a day or a cell. Plain JSON; counts of disjoint sets of tiles can be added. */
export interface Counts {
  counts: [key: string | number, count: number][];
  /** Number of tiles without a key. */
  overflow: number;
}

export interface Counter {
  add(row: number): void;
  counts(): Counts;
}

/** Adds the counts of disjoint sets of tiles. */
export function addCounts(parts: Counts[]): Counts {
  if (parts.length === 1) return parts[0]!;
  const sums = new Map<string | number, number>();
  for (const [key, count] of parts.flatMap(({ counts }) => counts))
    sums.set(key, (sums.get(key) ?? 0) + count);
  return { counts: [...sums], overflow: parts.reduce((sum, { overflow }) => sum + overflow, 0) };
}

export type TimeInterval = 'day' | 'month' | 'year';

const DAY_MS = 86_400_000;
/** If no interval is given, more days than this are counted by months, and more than 12 times as many by years. */
const MAX_DAY_BUCKETS = 100;
/** Maximum number of buckets of cells in an answer; those with the most tiles are kept. */
const MAX_CELLS = 10_000;

/** Counts by a name that rows have as a code. Rows without a name overflow. */
export function nameCounter(codes: ArrayLike<number>, names: readonly (string | null)[]): Counter {
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

export function nameBuckets({ counts, overflow }: Counts): Counted {
  const buckets = counts.map(
    ([key, frequency]): Bucket => ({ key: `${key}`, data_type: 'string', frequency }),
  );
  return { buckets: buckets.sort(byKey), overflow };
}

/** Counts by ten ranges of ten percent each. Rows without a value overflow. */
export function percentCounter(values: Float32Array): Counter {
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

export function percentBuckets({ counts, overflow }: Counts): Counted {
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
export function dayCounter(start: Float64Array): Counter {
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
export function timeBuckets({ counts: days }: Counts, interval: TimeInterval | undefined): Counted {
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
export function cellCounter({ columns }: IndexRun, name: GridName, precision: number): Counter {
  const code = grids.findIndex((grid) => grid.name === name);
  const span = spanOf(grids[code]!, precision);
  const found = new Map<number, number>();
  let overflow = 0;
  // Rows arrive cell by cell: those of one cell are counted together.
  let cell = -1;
  let run = 0;
  const flush = () => {
    if (run > 0) found.set(cell, (found.get(cell) ?? 0) + run);
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

export function cellBuckets({ counts, overflow }: Counts, name: GridName, precision: number): Counted {
  const grid = gridByName(name);
  const span = spanOf(grid, precision);
  const fullest = (counts as [number, number][]).sort(([a, n], [b, m]) => m - n || a - b);
  const buckets = fullest.slice(0, MAX_CELLS).map(([cell, frequency]): Bucket => {
    return { key: grid.geocode(cell * span, precision), data_type: 'string', frequency };
  });
  const left = fullest.slice(MAX_CELLS).reduce((sum, [, count]) => sum + count, 0);
  return { buckets: buckets.sort(byKey), overflow: overflow + left };
}

const spanOf = (grid: Grid, precision: number) => grid.key(grid.geocode(0, precision)).span;

const byKey = (a: Bucket, b: Bucket) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
