/** Writes the filter tree as CQL2 JSON, which `readCql2Json` converts back to the same tree. */
import type {
  Comparison,
  Filter,
  NumberExpression,
  OpenPeriod,
  PeriodEnd,
  PeriodExpression,
  TextExpression,
  TimeExpression,
} from '../filter/index.js';

export function toCql2Json(filter: Filter): unknown {
  switch (filter.op) {
    case 'and':
    case 'or':
      return filter.args.length === 0
        ? filter.op === 'and'
        : { op: filter.op, args: filter.args.map(toCql2Json) };
    case 'not':
      return { op: 'not', args: [toCql2Json(filter.arg)] };
    case 'in': {
      const values = 'periods' in filter ? filter.periods.map(instantJson) : filter.values;
      return values.length > 0 && withProperty(filter.op, filter.property, values);
    }
    case 'like':
      return withProperty(filter.op, filter.property, filter.pattern);
    case 'isNull':
      return { op: 'isNull', args: [{ property: filter.property }] };
    case 'isUnknown':
      return { op: 'isNull', args: [toCql2Json(filter.arg)] };
    case 'match':
      return { op: 'like', args: [expressionJson(filter.text), filter.pattern] };
    case 'compare':
      return { op: filter.sign, args: [expressionJson(filter.args[0]), expressionJson(filter.args[1])] };
    case 'periods':
      return { op: filter.relation, args: filter.args.map(periodExpressionJson) };
  }
  if ('shape' in filter) return withProperty(filter.op, 'geometry', filter.shape);
  if ('value' in filter) return withProperty(filter.op, filter.property, filter.value);
  if (!isComparison(filter)) return withProperty(filter.op, filter.property, periodJson(filter.period));
  return withProperty(filter.op, filter.property, instantJson(filter.period));
}

const withProperty = (op: string, property: string, value: unknown) => ({
  op,
  args: [{ property }, value],
});

function expressionJson(expression: TextExpression | NumberExpression | TimeExpression): unknown {
  if (typeof expression !== 'object' || !('op' in expression)) return expression;
  const args = 'arg' in expression ? [expression.arg] : expression.args;
  return { op: expression.op, args: args.map(expressionJson) };
}

function periodExpressionJson(period: PeriodExpression): unknown {
  return 'interval' in period ? { interval: period.interval.map(endJson) } : period;
}

function endJson(end: PeriodEnd): unknown {
  if (end === null) return '..';
  return typeof end === 'number' ? iso(end) : end;
}

const isComparison = (filter: Filter): filter is Comparison => /^[<=>]/.test(filter.op);

const iso = (time: number) => new Date(time).toISOString();

function instantJson([start, end]: [number, number]): unknown {
  return start === end ? { timestamp: iso(start) } : { date: iso(start).slice(0, 10) };
}

function periodJson([start, end]: OpenPeriod): unknown {
  if (start !== null && start === end) return { timestamp: iso(start) };
  return { interval: [start, end].map(endJson) };
}
