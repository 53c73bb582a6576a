/** Compiles filters to query plans: tests of rows, with bounds for conditions on properties. */

import { runInTurns } from '../async/index.js';
import { type Bbox, type CellParts, cellBbox, DividedCell, type Grid, grids } from '../grid/index.js';
import { type IndexRun, mergeRanges, type RowFilter, type RunFilter } from '../storage/index.js';
import {
  areaPredicate,
  cellPredicate,
  hasTime,
  idLikeTest,
  isNumber,
  isWavelength,
  numberColumn,
  numberOfRow,
  numberTest,
  type RowValue,
  storedNumber,
  textOfRow,
  textTest,
  timeColumns,
} from './columns.js';
import {
  type Comparison,
  type Condition,
  conditionsOf,
  type ExpressionComparison,
  type ExpressionLike,
  type Filter,
  type IsNull,
  type IsUnknown,
  type Like,
  type Membership,
  type NumberExpression,
  type NumberProperty,
  type PeriodEnd,
  type PeriodExpression,
  type PeriodRelation,
  propertiesOf,
  type Spatial,
  type Temporal,
  type TextExpression,
  type TextProperty,
} from './filter.js';
import {
  areaOfCell,
  type CellCovering,
  cellKey,
  descendantKeys,
  type PreparedGeometry,
  preparedShape,
  prepareShape,
  type SpatialOp,
  spatialRelations,
  vertexCount,
} from './geometry.js';
import {
  boundingPeriod,
  type ComparisonOp,
  calculate,
  comparisons,
  foldingFunctions,
  LikePattern,
  likePrefix,
  type Period,
  temporalConverse,
  temporalRelations,
} from './operators.js';
import { conjunction, disjunction, EMPTY_PLAN, type QueryPlan, type TestCost } from './plan.js';

/**
 * The plan of a filter, for any index.
 *
 * Conditions have three values in SQL and CQL2: true, false, unknown. A search returns tiles for which the filter is true. So NOT is
 * first moved down to the conditions, by De Morgan's laws, which also hold for three values. Then each condition is compiled to a
 * test for true, or for false under NOT. Unknown values satisfy neither.
 */
export function compileFilter(filter: Filter, negated = false): QueryPlan {
  if (filter.op === 'not') return compileFilter(filter.arg, !negated);
  if (filter.op === 'and' || filter.op === 'or') {
    const plans = filter.args.map((arg) => compileFilter(arg, negated));
    const isAnd = (filter.op === 'and') !== negated;
    if (plans.length === 0) return isAnd ? {} : EMPTY_PLAN;
    return isAnd ? conjunction(plans) : disjunction(plans);
  }
  if (filter.op === 'isUnknown') return isUnknown(filter, negated);
  return negated ? compileNegated(filter) : compileCondition(filter, false);
}

/**
 * Prepares the shapes of a filter in turns of the event loop, which may take half a second. `compileFilter` is fast afterwards. Throws
 * TW_QUERY_GEOMETRY and the reason of the signal.
 */
export async function prepareFilter(filter: Filter, signal?: AbortSignal): Promise<void> {
  for (const condition of conditionsOf(filter))
    if ('shape' in condition) await runInTurns(prepareShape(condition.shape), { signal });
}

/** A filter is known if it or its negation is true. */
function isUnknown({ arg }: IsUnknown, negated: boolean): QueryPlan {
  const known = disjunction([compileFilter(arg), compileFilter(arg, true)]);
  if (negated) return known;
  const { test, costs = [] } = known;
  if (!test) return EMPTY_PLAN;
  return {
    costs,
    test: (rows) => {
      const isKnown = test(rows);
      return (row) => !isKnown(row);
    },
  };
}

const NEGATED_OPERATORS: Record<ComparisonOp, ComparisonOp> = {
  '=': '<>',
  '<>': '=',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
};

/** Compiles the opposite condition if there is one, because it has bounds. Both are unknown for the same Items. */
function compileNegated(condition: Condition): QueryPlan {
  const { op } = condition;
  if (op === 'compare')
    return compileCondition({ ...condition, sign: NEGATED_OPERATORS[condition.sign] }, false);
  if (op in NEGATED_OPERATORS) {
    const opposite = { ...condition, op: NEGATED_OPERATORS[op as ComparisonOp] } as Condition;
    return compileCondition(opposite, false);
  }
  if (op === 't_disjoint') return compileCondition({ ...condition, op: 't_intersects' }, false);
  if (op === 's_disjoint') return compileCondition({ ...condition, op: 's_intersects' }, false);
  return compileCondition(condition, true);
}

/** The plan for rows for which a condition is true, or false if `negated`. */
function compileCondition(condition: Condition, negated: boolean): QueryPlan {
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

/**
 * The plan for rows for which a comparison of computed values, or of two properties, is true. Few such comparisons have bounds. For rows
 * for which it is false, compile the opposite comparison.
 */
function compileComparison(condition: ExpressionComparison): QueryPlan {
  switch (condition.kind) {
    case 'text':
      return textComparison(condition.sign, condition.args);
    case 'number':
      return compareNumbers(condition.sign, condition.args);
    case 'time':
      return { test: compareTimes(condition.sign, condition.args) };
  }
}

type ArgsOf<Kind> = Extract<ExpressionComparison, { kind: Kind }>['args'];

// Comparisons of texts

/** Work of a function of an id in each row, or of a geocode in each cell, besides the function itself. */
const ID_COST = 60;
const GEOCODE_COST = 30;
/** Work of folding and comparing a text. */
const FOLD_COST = 40;

/** The work of a test of a property's text of which each call takes `call`. */
function textCost(property: TextProperty, call: number): TestCost {
  if (property === 'id') return { row: ID_COST + call };
  if (property === 'geocode' || property === 'grid:code') return { cell: GEOCODE_COST + call };
  return { name: call };
}

/** An expression as a function of the text of its only property. A literal is a constant function. */
function textFunction(expression: TextExpression): (text: string) => string {
  if (typeof expression === 'string') return () => expression;
  if ('property' in expression) return (text) => text;
  const fold = foldingFunctions[expression.op];
  const inner = textFunction(expression.arg);
  return (text) => fold(inner(text));
}

function textValue(rows: IndexRun, expression: TextExpression): RowValue<string | null> {
  const fold = textFunction(expression);
  const [property] = propertiesOf(expression) as TextProperty[];
  if (property !== undefined) return textOfRow(rows, property, fold);
  const literal = fold('');
  return () => literal;
}

function textComparison(sign: ComparisonOp, [left, right]: ArgsOf<'text'>): QueryPlan {
  const holds = comparisons[sign];
  const properties = [...propertiesOf(left), ...propertiesOf(right)] as TextProperty[];
  const costs = properties.map((property) => textCost(property, FOLD_COST));
  const [property, ...others] = new Set(properties);
  // Ids are folded by their parts.
  if (property !== undefined && property !== 'id' && others.length === 0) {
    const leftOf = textFunction(left);
    const rightOf = textFunction(right);
    return { test: textTest(property, (text) => holds(leftOf(text), rightOf(text))), costs };
  }
  const test: RunFilter = (rows) => {
    const leftOf = textValue(rows, left);
    const rightOf = textValue(rows, right);
    return (row) => {
      const p = leftOf(row);
      const q = rightOf(row);
      return p !== null && q !== null && holds(p, q);
    };
  };
  // Two texts are compared in each row.
  return { test, costs: [{ row: FOLD_COST }, ...costs] };
}

function compileLike({ text, pattern }: ExpressionLike, negated: boolean): QueryPlan {
  const [property] = propertiesOf(text) as [TextProperty];
  return likePlan(property, pattern, negated, textFunction(text));
}

/** Work of a test of ids by their parts in each row, after the first rows. */
const ID_LIKE_COST = 20;

/** Most texts have some tens of characters, and few positions in the pattern are open at a time. */
const likeCost = (pattern: string): number => FOLD_COST + 50 + 5 * pattern.length;

function likePlan(
  property: TextProperty,
  pattern: string,
  negated: boolean,
  fold: (text: string) => string,
): QueryPlan {
  const like = new LikePattern(pattern);
  const cost = likeCost(pattern);
  if (property === 'id') {
    const costs = [{ row: ID_LIKE_COST, name: cost, cell: cost }];
    return { test: idLikeTest(like, fold, negated), costs };
  }
  const test = textTest(property, (text) => like.matches(fold(text)) !== negated);
  return { test, costs: [textCost(property, cost)] };
}

// Comparisons of numbers

function numberValue(rows: IndexRun, expression: NumberExpression): RowValue<number> {
  if (typeof expression === 'number') return () => expression;
  if ('property' in expression) return numberOfRow(rows, expression.property);
  const { op } = expression;
  const [a, b] = expression.args.map((arg) => numberValue(rows, arg)) as [RowValue<number>, RowValue<number>];
  return (row) => calculate(op, a(row), b(row));
}

/** Work of an operator, or of reading a number, in each row. */
const NUMBER_COST = 5;

function termsOf(expression: NumberExpression): number {
  if (typeof expression === 'number' || 'property' in expression) return 1;
  const [a, b] = expression.args;
  return 1 + termsOf(a) + termsOf(b);
}

function compareNumbers(sign: ComparisonOp, [left, right]: ArgsOf<'number'>): QueryPlan {
  const holds = comparisons[sign];
  const test: RunFilter = (rows) => {
    const a = numberValue(rows, left);
    const b = numberValue(rows, right);
    return (row) => holds(a(row), b(row));
  };
  return { test, costs: [{ row: NUMBER_COST * (termsOf(left) + termsOf(right)) }] };
}

// Comparisons of times and periods

function compareTimes(sign: ComparisonOp, [left, right]: ArgsOf<'time'>): RunFilter {
  const holds = comparisons[sign];
  return (rows) => {
    const a = timeColumns(rows, left.property);
    const b = timeColumns(rows, right.property);
    return (row) =>
      a.known?.(row) !== false && b.known?.(row) !== false && holds(a.first[row]!, b.first[row]!);
  };
}

/** An end of a period in a row; NaN if unknown. */
function endValue(rows: IndexRun, end: PeriodEnd, which: 'first' | 'last', open: number): RowValue<number> {
  if (end === null) return () => open;
  if (typeof end === 'number') return () => end;
  const { known, [which]: column } = timeColumns(rows, end.property);
  return (row) => (known?.(row) === false ? Number.NaN : column[row]!);
}

const endsOf = (period: PeriodExpression): [PeriodEnd, PeriodEnd] =>
  'interval' in period ? period.interval : [period, period];

function compilePeriodRelation({ relation, args }: PeriodRelation, negated: boolean): QueryPlan {
  const holds = temporalRelations[relation];
  const [[left, leftEnd], [right, rightEnd]] = args.map(endsOf) as [
    [PeriodEnd, PeriodEnd],
    [PeriodEnd, PeriodEnd],
  ];
  const test: RunFilter = (rows) => {
    const start = endValue(rows, left, 'first', -Infinity);
    const end = endValue(rows, leftEnd, 'last', Infinity);
    const otherStart = endValue(rows, right, 'first', -Infinity);
    const otherEnd = endValue(rows, rightEnd, 'last', Infinity);
    return (row) => {
      const a = start(row);
      const aEnd = end(row);
      const b = otherStart(row);
      const bEnd = otherEnd(row);
      // The first two are false if a period is unknown or ends before it starts.
      return a <= aEnd && b <= bEnd && holds(a, aEnd, b, bEnd) !== negated;
    };
  };
  const hull = negated
    ? undefined
    : (boundingPeriodOf(relation, args) ?? boundingPeriodOf(temporalConverse[relation], [args[1], args[0]]));
  return hull ? { test, time: { start: hull[0], end: hull[1] } } : { test };
}

/** A time that matching tiles overlap, if one period is the tile's own and the other one is a literal. */
function boundingPeriodOf(
  relation: PeriodRelation['relation'],
  [own, other]: PeriodRelation['args'],
): Period | undefined {
  const [first, last] = endsOf(own).map((end) =>
    typeof end === 'object' && end !== null ? end.property : '',
  );
  const isOwn =
    (first === 'datetime' || first === 'start_datetime') && (last === 'datetime' || last === 'end_datetime');
  if (!isOwn) return undefined;
  const [start, end] = endsOf(other);
  if (typeof start === 'object' && start !== null) return undefined;
  if (typeof end === 'object' && end !== null) return undefined;
  return boundingPeriod(relation, [start ?? -Infinity, end ?? Infinity]);
}

// Conditions on texts

type ValueComparison = Extract<Comparison, { value: unknown }>;

function comparison({ op, property, value }: ValueComparison): QueryPlan {
  if (typeof value === 'number') return numberComparison(property as NumberProperty, op, value);
  const name = property as TextProperty;
  if (op === '=') return textPlan(name, [value], false);
  const compare = comparisons[op];
  return { test: textTest(name, (text) => compare(text, value)), costs: [textCost(name, 5)] };
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
  const costs = [textCost(property, 10)];
  if (negated) return { test, costs };
  if (property === 'id') return { test, costs, ids: wanted };
  const geocodes =
    property === 'grid:code' ? values.map(geocodeFromGridCode) : property === 'geocode' ? values : undefined;
  const ranges = geocodes?.flatMap((geocode) =>
    grids.filter((grid) => grid.accepts(geocode)).map((grid) => cellKey(grid, geocode)),
  );
  return { test, costs, ranges };
}

function like({ property, pattern }: Like, negated: boolean): QueryPlan {
  const { prefix, isAll } = likePrefix(pattern);
  if (property === 'geocode' && isAll && prefix !== '' && !negated) return cellPlan(prefix, 'below');
  return likePlan(property, pattern, negated, (text) => text);
}

// Conditions on cells

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

/** Work of testing the area of a cell, and vertices of a shape for each further unit: most are far from the cell. */
const CELL_COST = 100;
const VERTICES_PER_UNIT = 20;

const WORLD_BBOX: Bbox = [-180, -90, 180, 90];

function spatial({ op, shape, ofCells }: Spatial, negated: boolean): QueryPlan {
  const { outline, covering } = preparedShape(shape);
  const relation = spatialRelations[op];
  const decide = (grid: Grid, geocode: string) =>
    relation(areaOfCell(cellBbox(grid, geocode)), outline) !== negated;
  const decideParts = (grid: Grid, geocode: string) => partsTest({ op, outline, negated }, grid, geocode);
  const test = (inside: CellCovering['inside']) =>
    ofCells
      ? cellPredicate(decide, mergeRanges(inside))
      : areaPredicate(decide, decideParts, mergeRanges(inside));
  // Tiles of one cell may hold data in different parts of it.
  const cost = { row: ofCells ? 1 : 5, cell: CELL_COST + vertexCount(shape) / VERTICES_PER_UNIT };
  if (negated || op === 's_disjoint') return { test: test([]), costs: [cost] };
  if (op === 's_intersects' && outline.covers(WORLD_BBOX)) return {};
  const { inside, edge } = covering;
  // All other relations also require a common point.
  const decided = op === 's_intersects' ? edge : [...inside, ...edge];
  return {
    test: test(op === 's_intersects' ? inside : []),
    costs: [{ ...cost, ranges: decided }],
    ranges: [...inside, ...edge],
  };
}

/** The functions that have one answer for all areas in a cell that a shape covers. */
const UNIFORM_IF_COVERED = new Set<SpatialOp>(['s_intersects', 's_disjoint', 's_within']);

/** The test of tiles that hold data in some parts of a cell. */
function partsTest(
  { op, outline, negated }: { op: SpatialOp; outline: PreparedGeometry; negated: boolean },
  grid: Grid,
  geocode: string,
): (parts: CellParts) => boolean {
  const cell = cellBbox(grid, geocode);
  const relation = spatialRelations[op];
  const isUniform = UNIFORM_IF_COVERED.has(op) && outline.covers(cell);
  if (isUniform || !outline.intersects(cell)) {
    const passes = relation(areaOfCell(cell), outline) !== negated;
    return () => passes;
  }
  const divided = new DividedCell(grid, geocode);
  if (op !== 's_intersects' && op !== 's_disjoint')
    return (parts) => relation({ cell, ...divided.area(parts) }, outline) !== negated;
  const { north, south } = divided.partsWhere((box) => {
    if (!outline.intersects(box)) return 'outside';
    return outline.covers(box) ? 'inside' : 'edge';
  });
  const expected = (op === 's_intersects') !== negated;
  return (parts) => (((parts.north & north) | (parts.south & south)) !== 0) === expected;
}

// Conditions on numbers

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

// Conditions on times

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
  const costs = [{ row: 2 * Math.ceil(Math.log2(merged.length + 1)) }];
  if (negated || property === 'created' || merged.length === 0) return { test, costs };
  return { test, costs, time: rangeOf([merged[0]![0], merged.at(-1)![1]]) };
}

const rangeOf = ([start, end]: Period) => ({ start, end });

// IS NULL

function isNull({ property }: IsNull, negated: boolean): QueryPlan {
  switch (property) {
    case 'platform':
      return nullPlan(negated, (rows) => textOfRow(rows, property, (text) => text), null);
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
