/** Query plans: a test of rows, bounds of the rows that can pass it, and the work that this takes. */
import { grids } from '../grid/index.js';
import { type CellKeyRange, type ColumnIndex, mergeRanges, type RunFilter } from '../storage/index.js';
import { queryTooCostly } from './errors.js';

/**
 * The work of a test, in units of comparing two numbers in columns, about 5 ns: for each row, and once for each name (of a collection, a
 * platform, a source or a scene) or for each cell that has rows. `ranges` limits the cells.
 */
export interface TestCost {
  row?: number;
  name?: number;
  cell?: number;
  ranges?: CellKeyRange[];
}

/** Bounds only restrict the visited rows; the test decides. */
export interface QueryPlan {
  /** Undefined if every row passes. */
  test?: RunFilter;
  /** The work of the test besides one unit for each row. */
  costs?: TestCost[];
  /** Keys of tiles that can match; all if undefined. */
  ranges?: CellKeyRange[];
  /** Ids of tiles that can match; all if undefined. */
  ids?: Set<string>;
  /** A time that matching tiles overlap, ends included. */
  time?: { start: number; end: number };
  /** True if the test is equivalent to `time`. */
  isTimeOnly?: boolean;
}

/** The plan that no row matches. */
export const EMPTY_PLAN: QueryPlan = {
  test: () => () => false,
  ranges: [],
  ids: new Set(),
  time: { start: Infinity, end: -Infinity },
};

/** The plan for rows that match all of one or more plans. */
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
  return { ...bounds, test: allTests(plans.flatMap((plan) => plan.test ?? [])), costs: costsOf(plans) };
}

/** The plan for rows that match at least one of one or more plans. */
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
  return { ...bounds, test: anyTests(tests), costs: costsOf(plans) };
}

const costsOf = (plans: QueryPlan[]): TestCost[] =>
  plans.flatMap(({ test, costs = [] }) => (test ? [{ row: 1 }, ...costs] : []));

/** The common case of two tests has no loop. */
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

/** A row passes both tests. An absent test passes every row. */
export function andTests(p: RunFilter | undefined, q: RunFilter | undefined): RunFilter | undefined {
  if (!p || !q) return p ?? q;
  return (rows) => {
    const one = p(rows);
    const other = q(rows);
    return (row) => one(row) && other(row);
  };
}

function anyTests(all: RunFilter[]): RunFilter | undefined {
  const [p, q, ...rest] = all;
  if (!p || !q) return p;
  return (rows) => {
    const tests = all.map((test) => test(rows));
    const [one, other] = tests;
    if (rest.length === 0) return (row) => one!(row) || other!(row);
    return (row) => {
      for (let i = 0; i < tests.length; i++) if (tests[i]!(row)) return true;
      return false;
    };
  };
}

/** Combines two values; if only one is present, returns that one. */
function combineOptional<T>(a: T | undefined, b: T | undefined, make: (a: T, b: T) => T): T | undefined {
  return a !== undefined && b !== undefined ? make(a, b) : (a ?? b);
}

/** The keys in both of two lists of ranges. */
function intersectRanges(a: CellKeyRange[], b: CellKeyRange[]): CellKeyRange[] {
  const left = mergeRanges(a);
  const right = mergeRanges(b);
  const shared: CellKeyRange[] = [];
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    const p = left[i]!;
    const q = right[j]!;
    const from = Math.max(p.from, q.from);
    const to = Math.min(p.to, q.to);
    if (p.grid === q.grid && from < to) shared.push({ grid: grids[p.grid]!.name, from, to });
    if (p.grid < q.grid || (p.grid === q.grid && p.to < q.to)) i++;
    else j++;
  }
  return shared;
}

/** Maximum work of one search on a node: some seconds, in turns with other work. */
const MAX_WORK = 1e9;

/**
 * Throws TW_QUERY_TOO_COSTLY if the work of a plan may exceed the limit. This work depends on the filter and on the numbers of rows, cells
 * and names in the index, and not on the machine.
 */
export function checkWork({ costs = [], ranges, ids }: QueryPlan, index: ColumnIndex): void {
  const { rows, cells, names } = index.sizeWithin({ ranges, ids });
  const work = costs.reduce((sum, { row = 0, name = 0, cell = 0, ranges }) => {
    const cellsOfTest = ranges ? Math.min(cells, index.sizeWithin({ ranges }).cells) : cells;
    return sum + row * rows + name * Math.min(names, rows) + cell * cellsOfTest;
  }, rows);
  if (work > MAX_WORK) throw queryTooCostly(work / MAX_WORK);
}
