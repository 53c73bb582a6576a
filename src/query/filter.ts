/**
 * The conditions of a search. CQL2, STAC parameters, the `query` extension and flags of commands are all converted to this tree. It is
 * plain JSON, so equal searches have equal texts. The properties that filters can use, and limits and checks of filters.
 */

import { type Check, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../utils/json-schema.js';
import { filterTooComplex, notQueryable, unknownProperty } from './errors.js';
import { readGeometry, type Shape, type SpatialOp, spatialRelations, vertexCount } from './geometry.js';
import {
  type ArithmeticOp,
  arithmeticOps,
  type ComparisonOp,
  comparisons,
  type FoldingFunction,
  foldingFunctions,
  type TemporalOp,
  temporalRelations,
} from './operators.js';

export type TextExpression =
  | string
  | { property: TextProperty }
  | { op: FoldingFunction; arg: TextExpression };

export type NumberExpression =
  | number
  | { property: NumberProperty }
  | { op: ArithmeticOp; args: [NumberExpression, NumberExpression] };

/** An instant; `datetime` stands for its start. */
export interface TimeExpression {
  property: TimeProperty;
}

/** Milliseconds since 1970, null for an open end, or the end of the period of a property. */
export type PeriodEnd = number | null | { property: TimeProperty };

/** The period of a property, or an interval with both ends included. */
export type PeriodExpression = { property: TimeProperty } | { interval: [start: PeriodEnd, end: PeriodEnd] };

/** An expression in a filter. Plain JSON. Readers replace expressions without a property by their value. */
type Expression = TextExpression | NumberExpression | PeriodExpression | PeriodEnd;

/** The properties in an expression, possibly more than once. */
export function propertiesOf(expression: Expression): PropertyName[] {
  if (typeof expression !== 'object' || expression === null) return [];
  if ('property' in expression) return [expression.property];
  if ('arg' in expression) return propertiesOf(expression.arg);
  return ('interval' in expression ? expression.interval : expression.args).flatMap(propertiesOf);
}

/** Number of functions and operators in an expression. */
function operatorCount(expression: Expression): number {
  if (typeof expression !== 'object' || expression === null || !('op' in expression)) return 0;
  if ('arg' in expression) return 1 + operatorCount(expression.arg);
  return 1 + operatorCount(expression.args[0]) + operatorCount(expression.args[1]);
}

/** Milliseconds since 1970, ends included; null for an open end. */
export type OpenPeriod = [start: number | null, end: number | null];

/** `and` without arguments is true, `or` without arguments is false. */
type Logic = { op: 'and'; args: Filter[] } | { op: 'or'; args: Filter[] };

interface Not {
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
  /** True to compare the cells of tiles, wherever in them the tiles have data. */
  ofCells?: true;
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
const MAX_LISTED_VALUES = 10_000;
const MAX_PATTERNS = 1_000;
/** Maximum length of a literal text, far more than any text of a tile. */
const MAX_TEXT_LENGTH = 10_000;
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
  checkLimit('characters in a text', text.length, MAX_TEXT_LENGTH);
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
    MAX_LISTED_VALUES,
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
  const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null;
  for (let levels = 0, level: object[] = [json].filter(isNested); level.length > 0; levels++) {
    if (levels >= MAX_LEVELS) throw filterTooComplex('levels of objects and lists', levels + 1, MAX_LEVELS);
    const next: object[] = [];
    for (const parent of level)
      for (const value of Array.isArray(parent) ? parent : Object.values(parent))
        if (isNested(value)) next.push(value);
    level = next;
  }
}

export function conditionsOf(filter: Filter): Condition[] {
  if (filter.op === 'not' || filter.op === 'isUnknown') return conditionsOf(filter.arg);
  if (filter.op === 'and' || filter.op === 'or') return filter.args.flatMap(conditionsOf);
  return [filter];
}

/** How a property is compared. Times are milliseconds since 1970. */
export type PropertyKind = 'text' | 'number' | 'time' | 'geometry';

export interface Property {
  kind: PropertyKind;
  isPercent?: true;
  title: string;
  description: string;
}

const properties = {
  id: { kind: 'text', title: 'Item id', description: 'Id of the tile.' },
  collection: { kind: 'text', title: 'Collection', description: 'Id of the collection.' },
  geometry: { kind: 'geometry', title: 'Geometry', description: 'The cell of the tile, in degrees.' },
  datetime: {
    kind: 'time',
    title: 'Time',
    description: 'Time of the scene. Comparisons use its start, temporal functions the entire period.',
  },
  start_datetime: { kind: 'time', title: 'Start', description: 'Start, if the tile stands for a period.' },
  end_datetime: { kind: 'time', title: 'End', description: 'End, if the tile stands for a period.' },
  created: { kind: 'time', title: 'Created', description: 'When the tile was made.' },
  'eo:cloud_cover': {
    kind: 'number',
    isPercent: true,
    title: 'Cloud cover',
    description: 'Percent of cloud among the assessed pixels; null if it could not be determined.',
  },
  pixel_coverage: {
    kind: 'number',
    isPercent: true,
    title: 'Pixel coverage',
    description: 'Percent of the cell with data in every band.',
  },
  'hsi:wavelength_min': {
    kind: 'number',
    title: 'Shortest wavelength',
    description: 'Shortest centre of the good bands of a spectrum, micrometres; null without a spectrum.',
  },
  'hsi:wavelength_max': {
    kind: 'number',
    title: 'Longest wavelength',
    description: 'Longest centre of the good bands of a spectrum, micrometres; null without a spectrum.',
  },
  platform: { kind: 'text', title: 'Platform', description: 'Satellite or aircraft, if known.' },
  source: { kind: 'text', title: 'Source', description: 'The last operation that made the tile.' },
  geocode: { kind: 'text', title: 'Geocode', description: 'Geohash or quadkey of the cell.' },
  'grid:code': { kind: 'text', title: 'Grid code', description: 'Grid and geocode: GEOHASH-9q8yy.' },
  scene: { kind: 'text', title: 'Scene', description: 'Id of the scene that the tile was cut from.' },
} satisfies Record<string, Property>;

export type PropertyName = keyof typeof properties;

type NamesOf<Kind> = {
  [P in PropertyName]: (typeof properties)[P]['kind'] extends Kind ? P : never;
}[PropertyName];
export type TextProperty = NamesOf<'text'>;
export type NumberProperty = NamesOf<'number'>;
export type WavelengthProperty = Extract<NumberProperty, `hsi:${string}`>;
export type TimeProperty = NamesOf<'time'>;

/** The properties of Items that filters can use. */
export const queryables: Readonly<Record<PropertyName, Property>> = properties;

/** Other members and properties of Items. */
const NOT_QUERYABLE = new Set([
  'type',
  'stac_version',
  'stac_extensions',
  'bbox',
  'links',
  'assets',
  'properties',
  'license',
  'attribution',
  'version',
  'proj:epsg',
  'proj:bbox',
  'proj:geometry',
]);

/** The property with this name, which may begin with `properties.`. Throws TW_QUERY_NOT_QUERYABLE, TW_QUERY_UNKNOWN_PROPERTY. */
export function parsePropertyName(given: string, where = ''): PropertyName {
  const name = given.replace(/^properties\./, '');
  if (Object.hasOwn(properties, name)) return name as PropertyName;
  const known = Object.keys(properties).join(', ');
  throw NOT_QUERYABLE.has(name) ? notQueryable(given, where, known) : unknownProperty(given, where, known);
}

export function propertyKind(property: PropertyName): PropertyKind {
  return properties[property].kind;
}

const PROPERTY_NAMES = Object.keys(queryables) as PropertyName[];
const COMPARISON_OPS = Object.keys(comparisons);

const namedSchema = (kind: PropertyKind) => ({
  enum: PROPERTY_NAMES.filter((name) => propertyKind(name) === kind),
});
const periodSchema = (...type: string[]) => ({ type: 'array', minItems: 2, maxItems: 2, items: { type } });

const conditionSchema = (ops: string[], members: object) => objectOf({ op: { enum: ops }, ...members });

const propertySchema = (kind: PropertyKind) => objectOf({ property: namedSchema(kind) });
const pairSchema = (items: object) => ({ type: 'array', minItems: 2, maxItems: 2, items });
const expressionSchema = (kind: string) => ({ $ref: `#/definitions/${kind}` });

const schemaDefinitions = {
  text: {
    anyOf: [
      TEXT,
      propertySchema('text'),
      objectOf({ op: { enum: Object.keys(foldingFunctions) }, arg: expressionSchema('text') }),
    ],
  },
  number: {
    anyOf: [
      NUMBER,
      propertySchema('number'),
      objectOf({ op: { enum: arithmeticOps }, args: pairSchema(expressionSchema('number')) }),
    ],
  },
  time: propertySchema('time'),
  period: {
    anyOf: [
      propertySchema('time'),
      objectOf({ interval: pairSchema({ anyOf: [{ type: ['number', 'null'] }, propertySchema('time')] }) }),
    ],
  },
};

const comparisonSchema = (kind: string) =>
  conditionSchema(['compare'], {
    kind: { enum: [kind] },
    sign: { enum: COMPARISON_OPS },
    args: pairSchema(expressionSchema(kind)),
  });

const checkCondition = messageCheck({
  definitions: schemaDefinitions,
  anyOf: [
    conditionSchema(COMPARISON_OPS, { property: namedSchema('text'), value: TEXT }),
    conditionSchema(COMPARISON_OPS, { property: namedSchema('number'), value: NUMBER }),
    conditionSchema(COMPARISON_OPS, { property: namedSchema('time'), period: periodSchema('number') }),
    conditionSchema(['in'], { property: namedSchema('text'), values: listOf(TEXT) }),
    conditionSchema(['in'], { property: namedSchema('number'), values: listOf(NUMBER) }),
    conditionSchema(['in'], { property: namedSchema('time'), periods: listOf(periodSchema('number')) }),
    conditionSchema(['like'], { property: namedSchema('text'), pattern: TEXT }),
    conditionSchema(['isNull'], { property: { enum: PROPERTY_NAMES } }),
    conditionSchema(Object.keys(temporalRelations), {
      property: namedSchema('time'),
      period: periodSchema('number', 'null'),
    }),
    conditionSchema(Object.keys(spatialRelations), { shape: { type: 'object' } }),
    comparisonSchema('text'),
    comparisonSchema('number'),
    comparisonSchema('time'),
    conditionSchema(['match'], { text: expressionSchema('text'), pattern: TEXT }),
    conditionSchema(['periods'], {
      relation: { enum: Object.keys(temporalRelations) },
      args: pairSchema(expressionSchema('period')),
    }),
  ],
});

const checkBox = messageCheck({ type: 'array', minItems: 4, maxItems: 4, items: NUMBER });

/** Checks the form of filters that other nodes send, which the compiler relies on. Throws TW_QUERY_TOO_COMPLEX and TW_QUERY_GEOMETRY. */
export const checkRemoteFilter: Check = (filter) => {
  checkNesting(filter);
  for (const pending: [unknown, levels: number][] = [[filter, 0]]; pending.length > 0; ) {
    const [one, levels] = pending.pop()!;
    const { op, arg, args, shape } = (one ?? {}) as Record<string, unknown>;
    if (op === 'isUnknown') {
      if (levels === MAX_UNKNOWN_DEPTH)
        throw filterTooComplex('levels of isUnknown', levels + 1, MAX_UNKNOWN_DEPTH);
      pending.push([arg, levels + 1]);
    } else if (op === 'not') pending.push([arg, levels]);
    else if ((op === 'and' || op === 'or') && Array.isArray(args))
      for (const part of args) pending.push([part, levels]);
    else {
      const fault =
        checkCondition(one) ?? (shape === undefined ? undefined : shapeFault(shape)) ?? constantFault(one);
      if (fault !== undefined) return `a condition of its filter: ${fault}`;
    }
  }
  return undefined;
};

/** Conditions on texts must contain a property, because it determines the test. */
function constantFault(condition: unknown): string | undefined {
  const one = condition as Condition;
  const isOfText = one.op === 'match' || (one.op === 'compare' && one.kind === 'text');
  return isOfText && referencedProperties(one).length === 0 ? `${one.op} has no property` : undefined;
}

function shapeFault(shape: unknown): string | undefined {
  if ('bbox' in (shape as object)) return checkBox((shape as { bbox: unknown }).bbox);
  readGeometry(shape);
  return undefined;
}
