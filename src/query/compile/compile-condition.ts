/** Compiles conditions on properties to tests of rows with bounds. */
import { type Bbox, cellBbox, grids } from '../../grid/index.js';
import { type IndexRun, mergeRanges, type RowFilter, type RunFilter } from '../../storage/index.js';
import {
  boundingPeriod,
  type Comparison,
  type ComparisonOp,
  type Condition,
  comparisons,
  type IsNull,
  type Like,
  likeMatcher,
  likePrefix,
  type Membership,
  type NumberProperty,
  type Period,
  type Spatial,
  type Temporal,
  type TextProperty,
  temporalRelations,
} from '../filter/index.js';
import {
  type CellCovering,
  cellKey,
  coverGeometry,
  descendantKeys,
  PreparedGeometry,
  spatialRelations,
} from '../geometry/index.js';
import { cellPredicate } from './compile-cell-predicate.js';
import { compileComparison, compileLike, compilePeriodRelation } from './compile-filter-expression.js';
import {
  hasTime,
  isNumber,
  isWavelength,
  numberColumn,
  numberTest,
  type RowValue,
  storedNumber,
  textOfRow,
  textTest,
  timeColumns,
} from './compile-row-values.js';
import { EMPTY_PLAN, type QueryPlan } from './compiled-query-plan.js';

/** The plan for rows for which a condition is true, or false if `negated`. */
export function compileCondition(condition: Condition, negated: boolean): QueryPlan {
  if ('shape' in condition) return spatial(condition, negated);
  switch (condition.op) {
    case 'compare':
      return compileComparison(condition);
    case 'match':
      return compileLike(condition, negated);
    case 'periods':
      return compilePeriodRelation(condition, negated);
    case 'isNull':
      return isNull(condition, negated);
    case 'in':
      return membership(condition, negated);
    case 'like':
      return like(condition, negated);
  }
  if ('value' in condition) return comparison(condition);
  return isTemporal(condition) ? temporal(condition, negated) : timeComparison(condition);
}

const isTemporal = (condition: { op: string }): condition is Temporal => condition.op.startsWith('t_');

// Text

type ValueComparison = Extract<Comparison, { value: unknown }>;

function comparison({ op, property, value }: ValueComparison): QueryPlan {
  if (typeof value === 'number') return numberComparison(property as NumberProperty, op, value);
  const name = property as TextProperty;
  if (op === '=') return textPlan(name, [value], false);
  const compare = comparisons[op];
  return { test: textTest(name, (text) => compare(text, value)) };
}

function membership(condition: Membership, negated: boolean): QueryPlan {
  if ('periods' in condition) return timeMembership(condition, negated);
  const { property, values } = condition;
  if (!isNumber(property)) return textPlan(property, values as string[], negated);
  const numbers = values as number[];
  const wanted = new Set(isWavelength(property) ? numbers : numbers.map(Math.fround));
  return { test: numberTest(property, (value) => wanted.has(value) !== negated) };
}

/** The text is one of `values`, or none of them if `negated`. */
function textPlan(property: TextProperty, values: string[], negated: boolean): QueryPlan {
  const wanted = new Set(values);
  if (property === 'geocode' && !negated && wanted.size === 1) return cellPlan(values[0]!, 'itself');
  const test = textTest(property, (text) => wanted.has(text) !== negated);
  if (negated) return { test };
  if (property === 'id') return { test, ids: wanted };
  const geocodes =
    property === 'grid:code' ? values.map(geocodeFromGridCode) : property === 'geocode' ? values : undefined;
  const ranges = geocodes?.flatMap((geocode) =>
    grids.filter((grid) => grid.accepts(geocode)).map((grid) => cellKey(grid, geocode)),
  );
  return { test, ranges };
}

function like({ property, pattern }: Like, negated: boolean): QueryPlan {
  const { prefix, isAll } = likePrefix(pattern);
  if (property === 'geocode' && isAll && prefix !== '' && !negated) return cellPlan(prefix, 'below');
  const matches = likeMatcher(pattern);
  return { test: textTest(property, (text) => matches(text) !== negated) };
}

// Cells

const geocodeFromGridCode = (code: string) => code.slice(code.indexOf('-') + 1);

/** The cell of a geocode in every grid that has it, or the cell and all cells below it. */
function cellPlan(geocode: string, which: 'itself' | 'below'): QueryPlan {
  const { length } = geocode;
  const found = grids.flatMap((one, code) => {
    if (!one.accepts(geocode)) return [];
    const range = which === 'below' ? descendantKeys(one, geocode) : cellKey(one, geocode);
    return [{ code, range }];
  });
  if (found.length === 0) return EMPTY_PLAN;
  const test: RunFilter = ({ columns: { grid, key, precision } }) => {
    const [first, second] = found.map(
      ({ code, range: { from, to } }): RowFilter =>
        (row) =>
          key[row] >= from &&
          key[row] < to &&
          grid[row] === code &&
          (which === 'below' ? precision[row] >= length : precision[row] === length),
    );
    return second ? (row) => first!(row) || second(row) : first!;
  };
  return { test, ranges: found.map(({ range }) => range) };
}

const WORLD_BBOX: Bbox = [-180, -90, 180, 90];

function spatial({ op, shape }: Spatial, negated: boolean): QueryPlan {
  const outline = new PreparedGeometry(shape);
  const relation = spatialRelations[op];
  const test = (inside: CellCovering['inside']) =>
    cellPredicate(
      (grid, geocode) => relation(cellBbox(grid, geocode), outline) !== negated,
      mergeRanges(inside),
    );
  if (negated || op === 's_disjoint') return { test: test([]) };
  if (op === 's_intersects' && outline.covers(WORLD_BBOX)) return {};
  const { inside, edge } = coverGeometry(outline);
  // All other relations also require a common point.
  return { test: test(op === 's_intersects' ? inside : []), ranges: [...inside, ...edge] };
}

// Numbers

function numberComparison(property: NumberProperty, op: ComparisonOp, value: number): QueryPlan {
  if (isWavelength(property)) {
    const compare = comparisons[op];
    return { test: numberTest(property, (one) => compare(one, value)) };
  }
  const bound = Math.fround(value);
  return { test: (rows) => columnTest(numberColumn(rows, property), op, [bound, bound]) };
}

/** Compares the values of a column with a closed period; a number is a period with equal ends. NaN passes no comparison. */
function columnTest(column: Float32Array | Float64Array, op: ComparisonOp, [start, end]: Period): RowFilter {
  const tests: Record<ComparisonOp, RowFilter> = {
    '=': (row) => column[row] >= start && column[row] <= end,
    '<>': (row) => column[row] < start || column[row] > end,
    '<': (row) => column[row] < start,
    '<=': (row) => column[row] <= end,
    '>': (row) => column[row] > end,
    '>=': (row) => column[row] >= start,
  };
  return tests[op];
}

// Times

function withKnown(test: RowFilter, known: RowFilter | undefined): RowFilter {
  return known ? (row) => known(row) && test(row) : test;
}

function temporal({ op, property, period }: Temporal, negated: boolean): QueryPlan {
  const start = period[0] ?? -Infinity;
  const end = period[1] ?? Infinity;
  const relation = temporalRelations[op];
  const test: RunFilter = (rows) => {
    const { first, last, known } = timeColumns(rows, property);
    return withKnown(
      op === 't_intersects'
        ? (row) => (first[row] <= end && last[row] >= start) !== negated
        : (row) => relation(first[row], last[row], start, end) !== negated,
      known,
    );
  };
  const hull = negated || property === 'created' ? undefined : boundingPeriod(op, [start, end]);
  const isTimeOnly = op === 't_intersects' && property === 'datetime' && !negated;
  return { test, time: hull && rangeOf(hull), isTimeOnly };
}

type TimeComparison = Extract<Comparison, { period: unknown }>;

function timeComparison({ op, property, period }: TimeComparison): QueryPlan {
  const [start, end] = period;
  const test: RunFilter = (rows) => {
    const { first, known } = timeColumns(rows, property);
    return withKnown(columnTest(first, op, period), known);
  };
  const hulls: Record<ComparisonOp, Period> = {
    '=': [start, end],
    '<>': [-Infinity, Infinity],
    '<': [-Infinity, start],
    '<=': [-Infinity, end],
    '>': [end, Infinity],
    '>=': [start, Infinity],
  };
  const time = property === 'created' ? undefined : rangeOf(hulls[op]);
  return { test, time };
}

type TimeMembership = Extract<Membership, { periods: unknown }>;

function timeMembership({ property, periods }: TimeMembership, negated: boolean): QueryPlan {
  const merged: [start: number, end: number][] = [];
  for (const [start, end] of [...periods].sort(([a], [b]) => a - b)) {
    const last = merged.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else merged.push([start, end]);
  }
  const isIn = (time: number) => {
    let low = 0;
    let high = merged.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (merged[middle]![1] < time) low = middle + 1;
      else high = middle;
    }
    return low < merged.length && merged[low]![0] <= time;
  };
  const test: RunFilter = (rows) => {
    const { first: column, known } = timeColumns(rows, property);
    return withKnown((row) => isIn(column[row]) !== negated, known);
  };
  if (negated || property === 'created' || merged.length === 0) return { test };
  return { test, time: rangeOf([merged[0]![0], merged.at(-1)![1]]) };
}

const rangeOf = ([start, end]: Period) => ({ start, end });

// Null

function isNull({ property }: IsNull, negated: boolean): QueryPlan {
  switch (property) {
    case 'platform':
      return nullPlan(negated, (rows) => textOfRow(rows, property), null);
    case 'eo:cloud_cover':
    case 'hsi:wavelength_min':
    case 'hsi:wavelength_max':
      return nullPlan(negated, (rows) => storedNumber(rows, property), Number.NaN);
    case 'start_datetime':
    case 'end_datetime':
      return nullPlan(negated, hasTime, false);
  }
  // Every Item has the other properties.
  return negated ? {} : EMPTY_PLAN;
}

/** The plan for rows that have the value `absent`, or another one if `negated`. */
function nullPlan<T>(negated: boolean, valueIn: (rows: IndexRun) => RowValue<T>, absent: T): QueryPlan {
  const test: RunFilter = (rows) => {
    const value = valueIn(rows);
    return (row) => Object.is(value(row), absent) !== negated;
  };
  return { test };
}
