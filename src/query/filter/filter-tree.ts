/**
 * The conditions of a search. CQL2, STAC parameters, the `query` extension and flags of commands are all converted to this tree.
 * It is plain JSON, so equal searches have equal texts.
 */
import { filterTooComplex } from '../errors.js';
import { type Shape, type SpatialOp, vertexCount } from '../geometry/index.js';
import type { ComparisonOp } from './filter-comparisons.js';
import {
  type NumberExpression,
  operatorCount,
  type PeriodExpression,
  propertiesOf,
  type TextExpression,
  type TimeExpression,
} from './filter-expression.js';
import type { NumberProperty, PropertyName, TextProperty, TimeProperty } from './filter-properties.js';
import type { TemporalOp } from './filter-temporal-relations.js';

/** Milliseconds since 1970, ends included; null for an open end. */
export type OpenPeriod = [start: number | null, end: number | null];

/** `and` without arguments is true, `or` without arguments is false. */
type Logic = { op: 'and'; args: Filter[] } | { op: 'or'; args: Filter[] };

export interface Not {
  op: 'not';
  arg: Filter;
}

/**
 * A time is compared with a closed period, which has equal ends for an instant: `<` is before it, `=` within it, `<=` not
 * after its end.
 */
export type Comparison =
  | { op: ComparisonOp; property: TextProperty; value: string }
  | { op: ComparisonOp; property: NumberProperty; value: number }
  | { op: ComparisonOp; property: TimeProperty; period: [start: number, end: number] };

/** A time is in a list if it is within one of the closed periods. */
export type Membership =
  | { op: 'in'; property: TextProperty; values: string[] }
  | { op: 'in'; property: NumberProperty; values: number[] }
  | { op: 'in'; property: TimeProperty; periods: [start: number, end: number][] };

/** `%` stands for any text, `_` for one character; a backslash escapes them. */
export interface Like {
  op: 'like';
  property: TextProperty;
  pattern: string;
}

export interface IsNull {
  op: 'isNull';
  property: PropertyName;
}

/** A relation of the cell of the tile to the shape. */
export interface Spatial {
  op: SpatialOp;
  shape: Shape;
}

/** A relation of the property to the period. `datetime` stands for the entire time of the tile. */
export interface Temporal {
  op: TemporalOp;
  property: TimeProperty;
  period: OpenPeriod;
}

/**
 * A comparison with a computed value, or of two properties. The names of this and the following conditions differ from those above, so
 * that nodes of versions without them refuse the condition.
 */
export type ExpressionComparison =
  | { op: 'compare'; kind: 'text'; sign: ComparisonOp; args: [TextExpression, TextExpression] }
  | { op: 'compare'; kind: 'number'; sign: ComparisonOp; args: [NumberExpression, NumberExpression] }
  | { op: 'compare'; kind: 'time'; sign: ComparisonOp; args: [TimeExpression, TimeExpression] };

/** A match of a computed text with a pattern as in `Like`. */
export interface ExpressionLike {
  op: 'match';
  text: TextExpression;
  pattern: string;
}

/** A relation of two periods. Unknown if a property in them is unknown, or a period ends before it starts. */
export interface PeriodRelation {
  op: 'periods';
  relation: TemporalOp;
  args: [PeriodExpression, PeriodExpression];
}

/** Conditions on one property. If an Item does not have it, the condition and its negation are unknown. */
type PropertyCondition = Comparison | Membership | Like | IsNull | Spatial | Temporal;

export type Condition = PropertyCondition | ExpressionComparison | ExpressionLike | PeriodRelation;

/** True if the other filter is unknown, otherwise false. */
export interface IsUnknown {
  op: 'isUnknown';
  arg: Filter;
}

export type Filter = Logic | Not | IsUnknown | Condition;

/** The conjunction of filters. Conjunctions among them are flattened. */
export const and = (filters: Filter[]): Filter => logic('and', filters);

/** The disjunction of filters. Disjunctions among them are flattened. */
export const or = (filters: Filter[]): Filter => logic('or', filters);

function logic(op: 'and' | 'or', filters: Filter[]): Filter {
  const args = filters.flatMap((filter) => (filter.op === op ? filter.args : [filter]));
  return args.length === 1 ? args[0]! : { op, args };
}

/** True if a filter refers to a property. */
export const references = (filter: Filter, property: PropertyName): boolean =>
  conditionsOf(filter).some((condition) => referencedProperties(condition).includes(property));

/** The properties of a condition. */
export function referencedProperties(condition: Condition): PropertyName[] {
  if (condition.op === 'match') return propertiesOf(condition.text);
  if (condition.op === 'compare' || condition.op === 'periods') return condition.args.flatMap(propertiesOf);
  return 'shape' in condition ? ['geometry'] : [condition.property];
}

/** Restricts a filter without a source to raw tiles: derived tiles are not new observations. */
export function defaultToRawSource(filter: Filter): Filter {
  return references(filter, 'source') ? filter : and([filter, { op: '=', property: 'source', value: 'raw' }]);
}

/** Each condition is tested for every visited row, so these limit the work of a search. */
const MAX_CONDITIONS = 100;
const MAX_VERTICES = 10_000;
const MAX_VALUES = 10_000;
const MAX_PATTERNS = 1_000;
/** Maximum length of a literal text, far more than any text of a tile. */
const MAX_TEXT = 10_000;
const MAX_OPERATORS = 200;
/** Maximum number of levels of brackets or operators. Readers of filters check it. */
export const MAX_DEPTH = 100;
/** Maximum number of levels of IS NULL around conditions: each doubles the work. */
export const MAX_UNKNOWN_DEPTH = 3;

function checkLimit(what: string, count: number, most: number): void {
  if (count > most) throw filterTooComplex(what, count, most);
}

/** Limits a literal text, before it is folded or compared. Throws TW_QUERY_TOO_COMPLEX. */
export function checkText(text: string): string {
  checkLimit('characters in a text', text.length, MAX_TEXT);
  return text;
}

/** Limits the characters of all patterns, before a text is matched with them. Throws TW_QUERY_TOO_COMPLEX. */
export function checkPatterns(characters: number): void {
  checkLimit('characters in its patterns', characters, MAX_PATTERNS);
}

/** Checks all limits except the nesting, which readers of filters check. Throws TW_QUERY_TOO_COMPLEX. */
export function checkSize(filter: Filter): Filter {
  const conditions = conditionsOf(filter);
  const sum = (count: (one: Condition) => number) => conditions.reduce((total, one) => total + count(one), 0);
  checkLimit('conditions', conditions.length, MAX_CONDITIONS);
  checkLimit(
    'points in its geometries',
    sum((one) => ('shape' in one ? vertexCount(one.shape) : 0)),
    MAX_VERTICES,
  );
  checkLimit(
    'values in its lists',
    sum((one) => (one.op === 'in' ? ('periods' in one ? one.periods : one.values).length : 0)),
    MAX_VALUES,
  );
  checkPatterns(sum((one) => (one.op === 'like' || one.op === 'match' ? one.pattern.length : 0)));
  checkLimit('functions and operators in its expressions', sum(operatorsOf), MAX_OPERATORS);
  return filter;
}

function operatorsOf(condition: Condition): number {
  if (condition.op === 'match') return operatorCount(condition.text);
  if (condition.op !== 'compare') return 0;
  return operatorCount(condition.args[0]) + operatorCount(condition.args[1]);
}

/** An operator has two levels of JSON, and its literals a few more. */
const MAX_LEVELS = 2 * MAX_DEPTH + 20;

/**
 * Limits the nesting of given JSON, even in unused members: the JSON of a job is stored, which would overflow the stack. Throws
 * TW_QUERY_TOO_COMPLEX.
 */
export function checkNesting(json: unknown): void {
  for (let levels = 0, level = [json]; level.length > 0; levels++) {
    if (levels > MAX_LEVELS) throw filterTooComplex('levels of objects and lists', levels, MAX_LEVELS);
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    );
  }
}

function conditionsOf(filter: Filter): Condition[] {
  if (filter.op === 'not' || filter.op === 'isUnknown') return conditionsOf(filter.arg);
  if (filter.op === 'and' || filter.op === 'or') return filter.args.flatMap(conditionsOf);
  return [filter];
}
