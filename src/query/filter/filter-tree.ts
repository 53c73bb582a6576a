/**
 * What a search asks for. CQL2, STAC parameters, the `query` extension and flags of commands all become this tree, and it
 * alone is compiled. It is plain JSON, so that equal searches have equal texts.
 */
import { filterTooComplex } from '../errors.js';
import { type Shape, vertexCount } from '../geometry/shape.js';
import type { SpatialOp } from '../geometry/spatial-relations.js';
import {
  type NumberExpression,
  operatorCount,
  type PeriodExpression,
  propertiesOf,
  type TextExpression,
  type TimeExpression,
} from './expression.js';
import type { NumberProperty, PropertyName, TextProperty, TimeProperty } from './properties.js';
import type { TemporalOp } from './temporal-relations.js';

export type ComparisonOp = '=' | '<>' | '<' | '<=' | '>' | '>=';

/** Milliseconds since 1970, ends included; null for an open end. */
export type OpenPeriod = [start: number | null, end: number | null];

/** Every one, or at least one. Without arguments: always, never. */
export type Logic = { op: 'and'; args: Filter[] } | { op: 'or'; args: Filter[] };

export interface Not {
  op: 'not';
  arg: Filter;
}

/**
 * A time is compared with a closed period, which for an instant has one end: `<` is before it, `=` within it, `<=` before
 * its end.
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

/** `%` stands for any text, `_` for one character, a backslash takes their meaning away. */
export interface Like {
  op: 'like';
  property: TextProperty;
  pattern: string;
}

export interface IsNull {
  op: 'isNull';
  property: PropertyName;
}

/** Of the cell of the tile to the shape. */
export interface Spatial {
  op: SpatialOp;
  shape: Shape;
}

/** Of the property, in case of `datetime` the whole time of the tile, to the period. */
export interface Temporal {
  op: TemporalOp;
  property: TimeProperty;
  period: OpenPeriod;
}

/**
 * Two values compared, of which one is computed or both are properties. The names of this and the following conditions are new to
 * versions that only know those above, so that a node of such a version refuses the condition and does not misread it.
 */
export type ExpressionComparison =
  | { op: 'compare'; kind: 'text'; sign: ComparisonOp; args: [TextExpression, TextExpression] }
  | { op: 'compare'; kind: 'number'; sign: ComparisonOp; args: [NumberExpression, NumberExpression] }
  | { op: 'compare'; kind: 'time'; sign: ComparisonOp; args: [TimeExpression, TimeExpression] };

/** A computed text, and a pattern as in `Like`. */
export interface ExpressionLike {
  op: 'match';
  text: TextExpression;
  pattern: string;
}

/** A relation of two periods. Unknown if a property in them is, and if one of them ends before it starts. */
export interface PeriodRelation {
  op: 'periods';
  relation: TemporalOp;
  args: [PeriodExpression, PeriodExpression];
}

/** Conditions on one property. Where an Item does not have it they are unknown, as their negation is. */
export type PropertyCondition = Comparison | Membership | Like | IsNull | Spatial | Temporal;

export type Condition = PropertyCondition | ExpressionComparison | ExpressionLike | PeriodRelation;

/** True if the other filter is unknown, else false. */
export interface IsUnknown {
  op: 'isUnknown';
  arg: Filter;
}

export type Filter = Logic | Not | IsUnknown | Condition;

/** The conjunction of some filters, with those that are conjunctions themselves taken apart. */
export const and = (filters: Filter[]): Filter => logic('and', filters);

/** The disjunction of some filters. */
export const or = (filters: Filter[]): Filter => logic('or', filters);

function logic(op: 'and' | 'or', filters: Filter[]): Filter {
  const args = filters.flatMap((filter) => (filter.op === op ? filter.args : [filter]));
  return args.length === 1 ? args[0]! : { op, args };
}

/** Whether a filter asks for a property. */
export function references(filter: Filter, property: PropertyName): boolean {
  switch (filter.op) {
    case 'not':
    case 'isUnknown':
      return references(filter.arg, property);
    case 'and':
    case 'or':
      return filter.args.some((arg) => references(arg, property));
  }
  return referencedProperties(filter).includes(property);
}

/** The properties that a condition asks for. */
export function referencedProperties(condition: Condition): PropertyName[] {
  if (condition.op === 'match') return propertiesOf(condition.text);
  if (condition.op === 'compare' || condition.op === 'periods') return condition.args.flatMap(propertiesOf);
  return 'shape' in condition ? ['geometry'] : [condition.property];
}

/** Tiles that were made from others hold no new observation: they are taken only where the filter asks for a source. */
export function defaultToRawSource(filter: Filter): Filter {
  return references(filter, 'source') ? filter : and([filter, { op: '=', property: 'source', value: 'raw' }]);
}

/** Each condition is asked of every row that is looked at, so these bound the work of a search. */
const MAX_CONDITIONS = 100;
const MAX_VERTICES = 10_000;
const MAX_VALUES = 10_000;
const MAX_PATTERNS = 1_000;
/** Characters of a literal text, far more than any text of a tile has. */
const MAX_TEXT = 10_000;
const MAX_OPERATORS = 200;
/** Levels of brackets or of operators in operators, for those who read filters. */
export const MAX_DEPTH = 100;
/** Levels of IS NULL around conditions: each doubles the work of those in it. */
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

/** Throws TW_QUERY_TOO_COMPLEX. The nesting is bounded by those who read filters. */
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

/** An operator takes two levels of JSON, and the literals in it a few more. */
const MAX_LEVELS = 2 * MAX_DEPTH + 20;

/** Of JSON as it was given, also of members that nobody reads: what is deeper than a stack cannot be stored. Throws TW_QUERY_TOO_COMPLEX. */
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
