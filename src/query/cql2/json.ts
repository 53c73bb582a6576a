/** Converts CQL2 JSON (OGC 21-065r2, section 8) to the filter tree, and back. CQL2 text is converted to CQL2 JSON first. */

import { parseJson } from '../../utils/json-text.js';
import { badCql2, badFilterLanguage, filterTooComplex, unsupportedCql2 } from '../errors.js';
import {
  and,
  type Comparison,
  checkPatterns,
  type Filter,
  MAX_DEPTH,
  MAX_UNKNOWN_DEPTH,
  type NumberExpression,
  type OpenPeriod,
  or,
  type PeriodEnd,
  type PeriodExpression,
  propertiesOf,
  type TextExpression,
  type TimeExpression,
  type TimeProperty,
} from '../filter.js';
import { type SpatialOp, spatialConverse, spatialRelations } from '../geometry.js';
import {
  type ComparisonOp,
  comparisons,
  LikePattern,
  type TemporalOp,
  temporalConverse,
  temporalRelations,
} from '../operators.js';
import {
  checkValue,
  describeLiteral,
  describeOperand,
  isObject,
  KIND_NAMES,
  type Locate,
  literalOf,
  type Operand,
  OperandReader,
  readInstant,
  readPeriod,
  readShape,
  toComparison,
} from './operands.js';
import { parseCql2Text } from './text.js';

type Period = { literal: OpenPeriod } | { expression: PeriodExpression };

/** Temporal functions of CQL2 JSON. Their arguments are properties, instants, and intervals of these. */
class TemporalReader {
  constructor(private readonly operands: OperandReader) {}

  read(op: TemporalOp, args: unknown[], at: string, where: string): Filter {
    const named = args.find((arg) => isObject(arg) && typeof arg['property'] === 'string') as
      | { property: string }
      | undefined;
    const other = named?.property ?? 'an interval';
    const [a, b] = args.map((arg, i) => this.period(arg, `${at}[${i}]`, where, other)) as [Period, Period];
    if ('literal' in a && 'literal' in b) return relationHolds(op, a.literal, b.literal) ? and([]) : or([]);
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

function relationHolds(op: TemporalOp, [a, aEnd]: OpenPeriod, [b, bEnd]: OpenPeriod): boolean {
  return temporalRelations[op](a ?? -Infinity, aEnd ?? Infinity, b ?? -Infinity, bEnd ?? Infinity);
}

/** Names of conditions, by their lower case. */
const CONDITIONS = new Map(
  ['and', 'or', 'not', 'between', 'in', 'like', 'isNull']
    .concat(Object.keys(comparisons), Object.keys(spatialRelations), Object.keys(temporalRelations))
    .map((op) => [op.toLowerCase(), op]),
);

/** Throws TW_QUERY_CQL2_SYNTAX and the errors of `readCql2Json`. */
export function readCql2Text(source: string): Filter {
  const { json, positions } = parseCql2Text(source);
  return new ConditionReader((node) => {
    const position = positions.get(node);
    return position === undefined ? '' : `at character ${position}`;
  }).filter(json, '', 0);
}

/** Throws TW_QUERY_CQL2, _CQL2_UNSUPPORTED, _UNKNOWN_PROPERTY, _NOT_QUERYABLE, _GEOMETRY, _DATETIME, _TOO_COMPLEX. */
export function readCql2Json(json: unknown): Filter {
  return new ConditionReader((_, path) => (path === '' ? '' : `at ${path}`)).filter(json, '', 0);
}

/** The values of `filter-lang`. */
export const FILTER_LANGUAGES = ['cql2-text', 'cql2-json'];

/** Throws TW_QUERY_FILTER_LANG. */
export function checkLanguage(language: string | undefined): void {
  if (language !== undefined && !FILTER_LANGUAGES.includes(language))
    throw badFilterLanguage('filter-lang', language, FILTER_LANGUAGES.join(' or '));
}

/**
 * Reads a filter parameter: an object is JSON; a text is CQL2 text unless `language` is `cql2-json`. Throws the errors of the
 * functions above, and TW_QUERY_FILTER_LANG.
 */
export function readCql2(filter: unknown, language?: string): Filter {
  checkLanguage(language);
  if (typeof filter !== 'string') {
    if (language === 'cql2-text') throw badCql2('', 'filter-lang is cql2-text, but the filter is not a text');
    return readCql2Json(filter);
  }
  if (language !== 'cql2-json') return readCql2Text(filter);
  try {
    return readCql2Json(parseJson(filter));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw badCql2.because(error, '', error.message);
  }
}

class ConditionReader {
  private readonly operands: OperandReader;
  private readonly temporal: TemporalReader;
  /** Levels of IS NULL around the current condition. */
  private unknownDepth = 0;
  /** Number of characters of all patterns so far. */
  private patternLength = 0;

  constructor(private readonly locate: Locate) {
    this.operands = new OperandReader(locate, (op) => CONDITIONS.has(op.toLowerCase()));
    this.temporal = new TemporalReader(this.operands);
  }

  filter(node: unknown, path: string, depth: number): Filter {
    if (depth > MAX_DEPTH) throw filterTooComplex('levels of operators', depth, MAX_DEPTH);
    if (node === true) return and([]);
    if (node === false) return or([]);
    if (!isObject(node)) throw badCql2(path && `at ${path}`, 'a condition is expected here');
    const where = this.locate(node, path);
    const { op: name, args } = node;
    if (typeof name !== 'string')
      throw badCql2(where, 'a condition is an object with the members "op" and "args"');
    const op = CONDITIONS.get(name.toLowerCase());
    if (op === undefined) throw this.notACondition(node, path, where);
    if (!Array.isArray(args)) throw badCql2(where, `"args" of "${op}" must be a list`);
    const at = `${path && `${path}.`}args`;
    switch (op) {
      case 'and':
      case 'or': {
        if (args.length === 0) throw badCql2(where, `"${op}" has no arguments`);
        const parts = args.map((arg, i) => this.filter(arg, `${at}[${i}]`, depth + 1));
        return op === 'and' ? and(parts) : or(parts);
      }
      case 'not':
        this.count(args, 1, op, where);
        return { op, arg: this.filter(args[0], `${at}[0]`, depth + 1) };
      case 'isNull':
        this.count(args, 1, op, where);
        return this.isNull(args[0], `${at}[0]`, where, depth);
      case 'between':
        return this.between(args, at, where);
      case 'in':
        return this.membership(args, at, where);
      case 'like':
        return this.like(args, at, where);
    }
    this.count(args, 2, op, where);
    if (op in spatialRelations) return this.spatial(op as SpatialOp, args, at, where);
    if (op in temporalRelations) return this.temporal.read(op as TemporalOp, args, at, where);
    const [left, right] = this.operands.readAll(args, at, where) as [Operand, Operand];
    return toComparison(op as ComparisonOp, left, right, where);
  }

  /** The error for an operand in place of a condition. Reading it throws if its operator is unsupported. */
  private notACondition(node: object, path: string, where: string) {
    const operand = this.operands.read(node, path, where);
    return badCql2(
      where,
      `${describeOperand(operand)} is a value, not a condition: compare it with another value`,
    );
  }

  private isNull(node: unknown, path: string, where: string, depth: number): Filter {
    if (isObject(node) && typeof node['op'] === 'string' && CONDITIONS.has(node['op'].toLowerCase())) {
      if (++this.unknownDepth > MAX_UNKNOWN_DEPTH)
        throw filterTooComplex('levels of IS NULL around conditions', this.unknownDepth, MAX_UNKNOWN_DEPTH);
      const arg = this.filter(node, path, depth + 1);
      this.unknownDepth--;
      return { op: 'isUnknown', arg };
    }
    const times = this.temporal.intervalProperties(node, path, where);
    if (times) return or(times.map((property) => ({ op: 'isNull', property })));
    const operand = this.operands.read(node, path, where);
    switch (operand.kind) {
      case 'literal':
        checkValue(operand.literal, where);
        return or([]);
      case 'text':
        // Functions of texts are unknown if the property is.
        return { op: 'isNull', property: propertiesOf(operand.expression)[0]! };
      case 'number': {
        const { expression } = operand;
        if ('property' in expression) return { op: 'isNull', property: expression.property };
        return {
          op: 'isUnknown',
          arg: { op: 'compare', kind: 'number', sign: '=', args: [expression, expression] },
        };
      }
      default:
        return { op: 'isNull', property: operand.expression.property };
    }
  }

  private between(given: unknown[], at: string, where: string): Filter {
    // In drafts of CQL2, both bounds were in one list.
    const args = given.length === 2 && Array.isArray(given[1]) ? [given[0], ...given[1]] : given;
    this.count(args, 3, 'between', where);
    const [value, low, high] = this.operands.readAll(args, at, where) as [Operand, Operand, Operand];
    return and([toComparison('>=', value, low, where), toComparison('<=', value, high, where)]);
  }

  private membership(args: unknown[], at: string, where: string): Filter {
    this.count(args, 2, 'in', where);
    const one = this.operands.read(args[0], `${at}[0]`, where);
    const list = args[1];
    if (!Array.isArray(list) || list.length === 0)
      throw badCql2(where, '"in" takes a value and a list of values');
    const others = this.operands.readAll(list, `${at}[1]`, where);
    const literals = others.flatMap((other) => (other.kind === 'literal' ? [other.literal] : []));
    if (one.kind === 'time' && literals.length === others.length) {
      const periods = literals.map((value) => readInstant(value, one.label, where));
      return { op: 'in', property: one.expression.property, periods };
    }
    if ((one.kind === 'text' || one.kind === 'number') && literals.length === others.length) {
      const { expression } = one;
      if ('property' in expression)
        return {
          op: 'in',
          property: expression.property,
          values: literals.map((value) => literalOf(one.kind, value, one.label, where)),
        } as Filter;
    }
    return or(others.map((other) => toComparison('=', one, other, where)));
  }

  private like(args: unknown[], at: string, where: string): Filter {
    this.count(args, 2, 'like', where);
    const text = this.operands.read(args[0], `${at}[0]`, where);
    const isText = text.kind === 'text' || (text.kind === 'literal' && typeof text.literal === 'string');
    if (!isText)
      throw badCql2(
        where,
        text.kind === 'literal'
          ? `LIKE needs a text, not ${describeOperand(text)}`
          : `LIKE needs a text; ${describeOperand(text)} is ${KIND_NAMES[text.kind]}`,
      );
    const pattern = this.operands.pattern(args[1], describeOperand(text), where);
    this.patternLength += pattern.length;
    checkPatterns(this.patternLength);
    if (text.kind === 'literal')
      return new LikePattern(pattern).matches(text.literal as string) ? and([]) : or([]);
    const { expression } = text as Extract<Operand, { kind: 'text' }>;
    if ('property' in expression) return { op: 'like', property: expression.property, pattern };
    return { op: 'match', text: expression, pattern };
  }

  private spatial(op: SpatialOp, args: unknown[], at: string, where: string): Filter {
    const [left, right] = this.operands.readAll(args, at, where) as [Operand, Operand];
    for (const operand of [left, right]) {
      if (operand.kind !== 'literal' && operand.kind !== 'geometry')
        throw badCql2(where, `${operand.label} is not a geometry: use the property geometry`);
    }
    if (left.kind === 'literal' && right.kind === 'literal')
      throw unsupportedCql2(
        where,
        'a spatial function of two given geometries, without the property geometry',
      );
    if (left.kind === 'literal')
      return { op: spatialConverse[op] ?? op, shape: readShape(left.literal, where) };
    if (right.kind === 'literal') return { op, shape: readShape(right.literal, where) };
    return REFLEXIVE_RELATIONS.has(op) ? and([]) : or([]);
  }

  private count(args: unknown[], count: number, op: string, where: string): void {
    if (args.length !== count)
      throw badCql2(where, `"${op}" takes ${count} argument${count > 1 ? 's' : ''}, not ${args.length}`);
  }
}

/** Relations that hold between a cell and itself. */
const REFLEXIVE_RELATIONS = new Set<SpatialOp>(['s_intersects', 's_within', 's_contains', 's_equals']);

/** Writes the filter tree as CQL2 JSON, which `readCql2Json` converts back to the same tree. */
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
