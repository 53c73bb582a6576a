/** Temporal functions of CQL2 JSON. Their arguments are properties, instants, and intervals of these. */
import { badCql2 } from '../errors.js';
import {
  and,
  type Filter,
  type OpenPeriod,
  or,
  type PeriodEnd,
  type PeriodExpression,
  propertiesOf,
  type TemporalOp,
  type TimeExpression,
  type TimeProperty,
  temporalConverse,
  temporalRelations,
} from '../filter/index.js';
import { describeLiteral, isObject, readPeriod } from './read-cql2-literals.js';
import type { Operand, OperandReader } from './read-cql2-operands.js';

type Period = { literal: OpenPeriod } | { expression: PeriodExpression };

export class TemporalReader {
  constructor(private readonly operands: OperandReader) {}

  read(op: TemporalOp, args: unknown[], at: string, where: string): Filter {
    const named = args.find((arg) => isObject(arg) && typeof arg['property'] === 'string') as
      | { property: string }
      | undefined;
    const other = named?.property ?? 'an interval';
    const [a, b] = args.map((arg, i) => this.period(arg, `${at}[${i}]`, where, other)) as [Period, Period];
    if ('literal' in a && 'literal' in b) return holds(op, a.literal, b.literal) ? and([]) : or([]);
    if ('expression' in a && 'property' in a.expression && 'literal' in b)
      return { op, property: a.expression.property, period: b.literal };
    if ('literal' in a && 'expression' in b && 'property' in b.expression)
      return { op: temporalConverse[op], property: b.expression.property, period: a.literal };
    return { op: 'periods', relation: op, args: [expressionOf(a), expressionOf(b)] };
  }

  /** The properties in an interval; undefined if the node is not an interval. */
  intervalProperties(node: unknown, path: string, where: string): TimeProperty[] | undefined {
    if (!isObject(node) || !Array.isArray(node['interval'])) return undefined;
    const period = this.period(node, path, where, 'an interval');
    return 'literal' in period ? [] : (propertiesOf(period.expression) as TimeProperty[]);
  }

  /** `other` names the other operand in messages about a literal. */
  private period(node: unknown, path: string, where: string, other: string): Period {
    const operand = this.operands.read(node, path, where);
    if (operand.kind !== 'literal') return { expression: timeOf(operand, where) };
    const interval = isObject(node) ? node['interval'] : undefined;
    if (!Array.isArray(interval) || interval.length !== 2 || !interval.some(isObject))
      return { literal: readPeriod(node, other, where) };
    const ends = interval.map((end, i) => this.end(end, i, `${path}.interval[${i}]`, where));
    return { expression: { interval: ends as [PeriodEnd, PeriodEnd] } };
  }

  private end(node: unknown, index: number, path: string, where: string): PeriodEnd {
    if (node === '..') return null;
    const operand = this.operands.read(node, path, where);
    if (operand.kind !== 'literal') return timeOf(operand, where);
    if (typeof node !== 'string')
      throw badCql2(
        where,
        `an interval has two ends, each a time, a property or "..", not ${describeLiteral(node)}`,
      );
    // A day stands for its first and its last millisecond.
    return readPeriod(node, 'an interval', where)[index]!;
  }
}

function timeOf(operand: Exclude<Operand, { kind: 'literal' }>, where: string): TimeExpression {
  if (operand.kind !== 'time') throw badCql2(where, `${operand.label} is not a time`);
  return operand.expression;
}

const expressionOf = (period: Period): PeriodExpression =>
  'literal' in period ? { interval: period.literal } : period.expression;

function holds(op: TemporalOp, [a, aEnd]: OpenPeriod, [b, bEnd]: OpenPeriod): boolean {
  return temporalRelations[op](a ?? -Infinity, aEnd ?? Infinity, b ?? -Infinity, bEnd ?? Infinity);
}
