/** Compiles conditions on computed values, and on two properties, to tests of rows. Few of these conditions have bounds. */
import type { IndexRun, RunFilter } from '../../storage/index.js';
import {
  boundingPeriod,
  type ComparisonOp,
  calculate,
  comparisons,
  type ExpressionComparison,
  type ExpressionLike,
  foldingFunctions,
  likeMatcher,
  type NumberExpression,
  type Period,
  type PeriodEnd,
  type PeriodExpression,
  type PeriodRelation,
  propertiesOf,
  type TextExpression,
  type TextProperty,
  temporalConverse,
  temporalRelations,
} from '../filter/index.js';
import { numberOfRow, type RowValue, textOfRow, textTest, timeColumns } from './compile-row-values.js';
import type { QueryPlan } from './compiled-query-plan.js';

/** The plan for rows for which a comparison is true. For rows for which it is false, compile the opposite comparison. */
export function compileComparison(condition: ExpressionComparison): QueryPlan {
  switch (condition.kind) {
    case 'text':
      return { test: textComparison(condition.sign, condition.args) };
    case 'number':
      return { test: numberComparison(condition.sign, condition.args) };
    case 'time':
      return { test: timeComparison(condition.sign, condition.args) };
  }
}

type ArgsOf<Kind> = Extract<ExpressionComparison, { kind: Kind }>['args'];

// Texts

/** An expression as a function of the text of its only property. A literal is a constant function. */
function textFunction(expression: TextExpression): (text: string) => string {
  if (typeof expression === 'string') return () => expression;
  if ('property' in expression) return (text) => text;
  const fold = foldingFunctions[expression.op];
  const inner = textFunction(expression.arg);
  return (text) => fold(inner(text));
}

function textComparison(sign: ComparisonOp, [left, right]: ArgsOf<'text'>): RunFilter {
  const holds = comparisons[sign];
  const one = textFunction(left);
  const other = textFunction(right);
  const [first] = propertiesOf(left) as TextProperty[];
  const [second] = propertiesOf(right) as TextProperty[];
  if (first === undefined || second === undefined || first === second)
    return textTest((first ?? second)!, (text) => holds(one(text), other(text)));
  return (rows) => {
    const a = textOfRow(rows, first);
    const b = textOfRow(rows, second);
    return (row) => {
      const p = a(row);
      const q = b(row);
      return p !== null && q !== null && holds(one(p), other(q));
    };
  };
}

export function compileLike({ text, pattern }: ExpressionLike, negated: boolean): QueryPlan {
  const [property] = propertiesOf(text) as [TextProperty];
  const value = textFunction(text);
  const matches = likeMatcher(pattern);
  return { test: textTest(property, (given) => matches(value(given)) !== negated) };
}

// Numbers

function numberValue(rows: IndexRun, expression: NumberExpression): RowValue<number> {
  if (typeof expression === 'number') return () => expression;
  if ('property' in expression) return numberOfRow(rows, expression.property);
  const { op } = expression;
  const [a, b] = expression.args.map((arg) => numberValue(rows, arg)) as [RowValue<number>, RowValue<number>];
  return (row) => calculate(op, a(row), b(row));
}

function numberComparison(sign: ComparisonOp, [left, right]: ArgsOf<'number'>): RunFilter {
  const holds = comparisons[sign];
  return (rows) => {
    const a = numberValue(rows, left);
    const b = numberValue(rows, right);
    return (row) => holds(a(row), b(row));
  };
}

// Times

function timeComparison(sign: ComparisonOp, [left, right]: ArgsOf<'time'>): RunFilter {
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

export function compilePeriodRelation({ relation, args }: PeriodRelation, negated: boolean): QueryPlan {
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
