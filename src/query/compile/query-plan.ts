/** What the index needs to know of a filter. */
import { type GridName, grids } from '../../grid/index.js';
import type { CellKeyRange, RowFilter, RunFilter } from '../../storage/index.js';

/** The bounds only tell where to look; the test decides. */
export interface QueryPlan {
  /** Undefined if every row fits. */
  test?: RunFilter;
  /** Keys that can fit; all where undefined. */
  ranges?: CellKeyRange[];
  /** Tiles that can fit; all where undefined. */
  ids?: Set<string>;
  /** What the time of a tile that fits overlaps, ends included. */
  time?: { start: number; end: number };
  /** The test says what `time` says, and no more. */
  isTimeOnly?: boolean;
}

/** Nothing fits. */
export const EMPTY_PLAN: QueryPlan = {
  test: () => () => false,
  ranges: [],
  ids: new Set(),
  time: { start: Infinity, end: -Infinity },
};

/** What fits all of one or more plans. */
export function conjunction(plans: QueryPlan[]): QueryPlan {
  const bounds = plans.reduce(
    (a, b): QueryPlan => ({
      ranges: combineOptional(a.ranges, b.ranges, intersectRanges),
      ids: combineOptional(a.ids, b.ids, (p, q) => new Set([...p].filter((id) => q.has(id)))),
      time: combineOptional(a.time, b.time, (p, q) => ({
        start: Math.max(p.start, q.start),
        end: Math.min(p.end, q.end),
      })),
    }),
  );
  return { ...bounds, test: allTests(plans.flatMap((plan) => plan.test ?? [])) };
}

/** What fits at least one of one or more plans. */
export function disjunction(plans: QueryPlan[]): QueryPlan {
  const tests = plans.flatMap((plan) => plan.test ?? []);
  if (tests.length < plans.length) return {};
  const bounds = plans.reduce(
    ({ time: m, ...a }, { time: n, ...b }): QueryPlan => ({
      ranges: a.ranges && b.ranges && [...a.ranges, ...b.ranges],
      ids: a.ids && b.ids && new Set([...a.ids, ...b.ids]),
      time: m && n && { start: Math.min(m.start, n.start), end: Math.max(m.end, n.end) },
    }),
  );
  return { ...bounds, test: anyTests(tests) };
}

/** Two are joined without a loop, because most are. */
function allTests(all: RunFilter[]): RunFilter | undefined {
  const [p, q, ...rest] = all;
  if (!p || !q) return p;
  if (rest.length === 0) return andTests(p, q);
  return (rows) => {
    const tests = all.map((test) => test(rows));
    return (row) => {
      for (let i = 0; i < tests.length; i++) if (!tests[i]!(row)) return false;
      return true;
    };
  };
}

/** What fits both of two tests, of which each may be absent. */
export function andTests(p: RunFilter | undefined, q: RunFilter | undefined): RunFilter | undefined {
  if (!p || !q) return p ?? q;
  return (rows) => {
    const [one, other] = [p(rows), q(rows)];
    return (row) => one(row) && other(row);
  };
}

function anyTests(all: RunFilter[]): RunFilter | undefined {
  const [p, q, ...rest] = all;
  if (!p || !q) return p;
  return (rows) => {
    const tests = all.map((test) => test(rows));
    return rest.length === 0 ? orTests(tests[0]!, tests[1]!) : orAllTests(tests);
  };
}

const orTests =
  (p: RowFilter, q: RowFilter): RowFilter =>
  (row) =>
    p(row) || q(row);

function orAllTests(tests: RowFilter[]): RowFilter {
  return (row) => {
    for (let i = 0; i < tests.length; i++) if (tests[i]!(row)) return true;
    return false;
  };
}

/** Of two that may be absent: the one, the other, or what is made of both. */
function combineOptional<T>(a: T | undefined, b: T | undefined, make: (a: T, b: T) => T): T | undefined {
  return a !== undefined && b !== undefined ? make(a, b) : (a ?? b);
}

/** Keys in both of two lists of ranges, which may overlap among themselves. */
function intersectRanges(a: CellKeyRange[], b: CellKeyRange[]): CellKeyRange[] {
  return grids.flatMap(({ name }) => {
    const [left, right] = [mergeRangesOfGrid(a, name), mergeRangesOfGrid(b, name)];
    const shared: CellKeyRange[] = [];
    for (let i = 0, j = 0; i < left.length && j < right.length; ) {
      const [p, q] = [left[i]!, right[j]!];
      const range = { grid: name, from: Math.max(p.from, q.from), to: Math.min(p.to, q.to) };
      if (range.from < range.to) shared.push(range);
      if (p.to < q.to) i++;
      else j++;
    }
    return shared;
  });
}

/** The ranges of one grid in ascending order, those that touch put together. */
function mergeRangesOfGrid(ranges: CellKeyRange[], grid: GridName): CellKeyRange[] {
  const merged: CellKeyRange[] = [];
  for (const range of ranges.filter((one) => one.grid === grid).sort((p, q) => p.from - q.from)) {
    const last = merged.at(-1);
    if (last && range.from <= last.to) last.to = Math.max(last.to, range.to);
    else merged.push({ grid, from: range.from, to: range.to });
  }
  return merged;
}
