/** The operands of conditions in CQL2 JSON, properties, literals, and expressions of these; comparisons of two operands. */
import { badCql2, filterTooComplex, unsupportedCql2 } from '../errors.js';
import {
  and,
  checkPatterns,
  checkText,
  type Filter,
  MAX_DEPTH,
  type NumberExpression,
  type OpenPeriod,
  or,
  type PropertyKind,
  parsePropertyName,
  propertyKind,
  type TextExpression,
  type TimeExpression,
} from '../filter.js';
import { readGeometry, type Shape } from '../geometry.js';
import {
  type ArithmeticOp,
  arithmeticOps,
  type ComparisonOp,
  calculate,
  comparisons,
  type FoldingFunction,
  foldingFunctions,
  foldPattern,
} from '../operators.js';
import { checkBbox, parseDatetime } from '../values.js';

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readText(literal: unknown, property: string, where: string): string {
  if (typeof literal === 'string') return literal;
  throw typeMismatch(literal, property, 'a text', where);
}

function readNumber(literal: unknown, property: string, where: string): number {
  if (typeof literal === 'number' && Number.isFinite(literal)) return literal;
  throw typeMismatch(literal, property, 'a number', where);
}

/** First and last millisecond of an instant or a day. */
export function readInstant(literal: unknown, property: string, where: string): [start: number, end: number] {
  const { start, end } = rangeOf(literal, property, where);
  if (start === undefined || end === undefined || (isObject(literal) && 'interval' in literal))
    throw typeMismatch(literal, property, 'a time', where);
  return [start, end];
}

/** The period of an instant, a day or an interval. */
export function readPeriod(literal: unknown, property: string, where: string): OpenPeriod {
  const { start = null, end = null } = rangeOf(literal, property, where);
  return [start, end];
}

function rangeOf(literal: unknown, property: string, where: string): { start?: number; end?: number } {
  if (typeof literal === 'string' && !literal.includes('/')) return parseDatetime(literal, { dates: 'days' });
  if (isObject(literal)) {
    const { timestamp, date, interval } = literal;
    if (typeof timestamp === 'string' && !timestamp.includes('/')) return parseDatetime(timestamp);
    if (typeof date === 'string' && /^[\d-]+$/.test(date)) return parseDatetime(date, { dates: 'days' });
    if (Array.isArray(interval) && interval.length === 2) return intervalOf(interval, property, where);
  }
  throw typeMismatch(literal, property, "a time such as TIMESTAMP('2024-06-01T00:00:00Z')", where);
}

function intervalOf(ends: unknown[], property: string, where: string): { start?: number; end?: number } {
  if (ends.every((end) => end === '..')) return {};
  if (ends.every((end) => typeof end === 'string' && end !== '' && !end.includes('/')))
    return parseDatetime(ends.join('/'), { dates: 'days' });
  throw typeMismatch(ends, property, 'an interval of two times', where);
}

/** Reads GeoJSON or `{"bbox": [...]}`. */
export function readShape(literal: unknown, where: string): Shape {
  if (!isObject(literal)) throw badCql2(where, 'a spatial function takes a property and a geometry');
  if ('type' in literal) return readGeometry(literal);
  const { bbox } = literal;
  if (!Array.isArray(bbox) || !bbox.every((number) => typeof number === 'number'))
    throw badCql2(where, 'a geometry is GeoJSON or {"bbox": [west, south, east, north]}');
  return { bbox: checkBbox(bbox) };
}

function typeMismatch(literal: unknown, property: string, wanted: string, where: string) {
  const hint = literal === null ? ': use IS NULL to find missing values' : '';
  return badCql2(
    where,
    `${property} is compared with ${wanted}, not with ${describeLiteral(literal)}${hint}`,
  );
}

/** Checks a literal operand of IS NULL: a text, a number, a truth value, a time or a geometry. */
export function checkValue(literal: unknown, where: string): void {
  if (isObject(literal)) {
    if ('type' in literal || 'bbox' in literal) readShape(literal, where);
    else rangeOf(literal, 'IS NULL', where);
  } else if (!['string', 'number', 'boolean'].includes(typeof literal))
    throw badCql2(where, `IS NULL takes a property, a value or a condition, not ${describeLiteral(literal)}`);
}

/** Describes a literal in a message. */
export function describeLiteral(literal: unknown): string {
  if (literal === Infinity || literal === -Infinity) return 'a number beyond 1.8e308';
  const text = JSON.stringify(literal) ?? 'nothing';
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}

/**
 * An expression with a property, and its label for messages; or a literal, whose type depends on the other operand, and the folds
 * that were applied to it.
 */
export type Operand =
  | { kind: 'text'; expression: Exclude<TextExpression, string>; label: string }
  | { kind: 'number'; expression: Exclude<NumberExpression, number>; label: string }
  | { kind: 'time'; expression: TimeExpression; label: string }
  | { kind: 'geometry'; expression: { property: 'geometry' }; label: string }
  | { kind: 'literal'; literal: unknown; folds?: FoldingFunction[] };

export const KIND_NAMES: Record<PropertyKind, string> = {
  text: 'a text',
  number: 'a number',
  time: 'a time',
  geometry: 'a geometry',
};

/** Describes the location of an object in a message: its path in JSON, or its position in a text. */
export type Locate = (node: object, path: string) => string;

const byLowerCase = <T extends string>(names: T[]) =>
  new Map(names.map((name) => [name.toLowerCase(), name]));

const FOLDING_FUNCTIONS = byLowerCase(Object.keys(foldingFunctions) as FoldingFunction[]);
const ARITHMETIC = byLowerCase(arithmeticOps);

/** Reads the operands of conditions. `isCondition` is true for names of conditions, which are not operands. */
export class OperandReader {
  constructor(
    private readonly locate: Locate,
    private readonly isCondition: (op: string) => boolean,
  ) {}

  read(node: unknown, path: string, where: string, depth = 0): Operand {
    if (depth > MAX_DEPTH) throw filterTooComplex('levels of operators', depth, MAX_DEPTH);
    if (typeof node === 'string') return { kind: 'literal', literal: checkText(node) };
    if (!isObject(node)) return { kind: 'literal', literal: node };
    const here = this.locate(node, path) || where;
    if ('property' in node) {
      if (typeof node['property'] !== 'string')
        throw badCql2(here, 'the name of a property is a text, in JSON {"property": "eo:cloud_cover"}');
      const property = parsePropertyName(node['property'], this.locate(node, path));
      return { kind: propertyKind(property), expression: { property }, label: property } as Operand;
    }
    const { op, args } = node;
    if (typeof op !== 'string') return { kind: 'literal', literal: node };
    const fold = FOLDING_FUNCTIONS.get(op.toLowerCase());
    const arithmetic = ARITHMETIC.get(op.toLowerCase());
    if (fold === undefined && arithmetic === undefined) throw this.notAValue(op, here);
    const count = fold === undefined ? 2 : 1;
    if (!Array.isArray(args) || args.length !== count)
      throw badCql2(here, `"${op}" takes a list of ${count === 1 ? 'one text' : 'two numbers'} as "args"`);
    const operands = this.readAll(args, `${path && `${path}.`}args`, here, depth + 1);
    if (fold) return foldOperand(fold, operands[0]!, here);
    return arithmeticOperand(arithmetic!, operands as [Operand, Operand], here);
  }

  readAll(nodes: unknown[], path: string, where: string, depth = 0): Operand[] {
    return nodes.map((node, i) => this.read(node, `${path}[${i}]`, where, depth));
  }

  /** A pattern of LIKE: a text, or a function of texts with a pattern as its argument. */
  pattern(node: unknown, property: string, where: string, depth = 0): string {
    if (depth > MAX_DEPTH) throw filterTooComplex('levels of operators', depth, MAX_DEPTH);
    if (typeof node === 'string') {
      checkPatterns(node.length);
      return node;
    }
    const { op, args } = isObject(node) ? node : {};
    const fold = typeof op === 'string' ? FOLDING_FUNCTIONS.get(op.toLowerCase()) : undefined;
    if (fold !== undefined && Array.isArray(args) && args.length === 1) {
      const inner = this.pattern(args[0], property, where, depth + 1);
      return foldPattern(inner, foldingFunctions[fold]);
    }
    if (typeof op === 'string' && fold === undefined)
      throw unsupportedCql2(where, `the function "${op}" in a pattern`);
    throw badCql2(
      where,
      `${property} is compared with a pattern, which is a text or CASEI or ACCENTI of one, not with ${describeLiteral(node)}`,
    );
  }

  private notAValue(op: string, where: string) {
    if (this.isCondition(op))
      return unsupportedCql2(where, `the condition "${op}" as a value of a comparison`);
    if (/^a_/i.test(op)) return unsupportedCql2(where, `the array function "${op}"`);
    return unsupportedCql2(where, `the function "${op}"`);
  }
}

function foldOperand(fold: FoldingFunction, operand: Operand, where: string): Operand {
  const label = fold.toUpperCase();
  if (operand.kind === 'literal' && typeof operand.literal === 'string') {
    const { literal, folds: applied = [] } = operand;
    return applied.includes(fold)
      ? operand
      : { kind: 'literal', literal: foldingFunctions[fold](literal), folds: [...applied, fold] };
  }
  if (operand.kind !== 'text') throw badCql2(where, `${label} takes a text, not ${describeOperand(operand)}`);
  if (hasFold(operand.expression, fold)) return operand;
  return { kind: 'text', expression: { op: fold, arg: operand.expression }, label };
}

function hasFold(expression: TextExpression, fold: FoldingFunction): boolean {
  if (typeof expression !== 'object' || !('op' in expression)) return false;
  return expression.op === fold || hasFold(expression.arg, fold);
}

function arithmeticOperand(op: ArithmeticOp, operands: [Operand, Operand], where: string): Operand {
  const args = operands.map((operand) => {
    if (operand.kind === 'number') return operand.expression;
    if (operand.kind === 'literal' && Number.isFinite(operand.literal)) return operand.literal;
    throw badCql2(where, `"${op}" takes numbers, not ${describeOperand(operand)}`);
  }) as [NumberExpression, NumberExpression];
  const [a, b] = args;
  const result = typeof a === 'number' && typeof b === 'number' ? calculate(op, a, b) : Number.NaN;
  // An unknown result remains an expression, because JSON has no number for it.
  if (!Number.isNaN(result)) return { kind: 'literal', literal: result };
  return { kind: 'number', expression: { op, args }, label: `the result of "${op}"` };
}

/** Describes an operand in a message. */
export function describeOperand(operand: Operand): string {
  if (operand.kind === 'literal') return describeLiteral(operand.literal);
  return operand.label;
}

/** The equivalent operators with swapped operands, for those that are not symmetric. */
const CONVERSE_OPERATORS: Partial<Record<ComparisonOp, ComparisonOp>> = {
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
};

type Computed = Exclude<Operand, { kind: 'literal' }>;

/**
 * Converts a comparison. A property and a literal, in either order, become a condition that the index can use. Two literals become true
 * or false. Throws TW_QUERY_CQL2, TW_QUERY_DATETIME.
 */
export function toComparison(op: ComparisonOp, left: Operand, right: Operand, where: string): Filter {
  if (left.kind === 'literal' && right.kind === 'literal')
    return compareLiterals(op, left.literal, right.literal, where) ? and([]) : or([]);
  if (left.kind === 'literal')
    return compareWithLiteral(CONVERSE_OPERATORS[op] ?? op, right as Computed, left.literal, where);
  if (right.kind === 'literal') return compareWithLiteral(op, left, right.literal, where);
  for (const { kind } of [left, right]) if (kind === 'geometry') throw geometryCompared(where);
  if (left.kind !== right.kind)
    throw badCql2(
      where,
      `${left.label} is ${KIND_NAMES[left.kind]} and ${right.label} is ${KIND_NAMES[right.kind]}, so they cannot be compared`,
    );
  return { op: 'compare', kind: left.kind, sign: op, args: [left.expression, right.expression] } as Filter;
}

function compareWithLiteral(op: ComparisonOp, one: Computed, literal: unknown, where: string): Filter {
  const { kind, expression, label } = one;
  switch (kind) {
    case 'geometry':
      throw geometryCompared(where);
    case 'time':
      return { op, property: expression.property, period: readInstant(literal, label, where) };
  }
  const value = literalOf(kind, literal, label, where);
  if ('property' in expression) return { op, property: expression.property, value } as Filter;
  return { op: 'compare', kind, sign: op, args: [expression, value] } as Filter;
}

/** Checks the type of a literal against the other operand. */
export function literalOf(
  kind: PropertyKind,
  literal: unknown,
  label: string,
  where: string,
): string | number {
  return kind === 'text' ? readText(literal, label, where) : readNumber(literal, label, where);
}

const geometryCompared = (where: string) =>
  badCql2(where, 'geometry cannot be compared: use S_INTERSECTS or another spatial function');

/** A day is a period: it is equal to an instant that it contains. */
function compareLiterals(op: ComparisonOp, left: unknown, right: unknown, where: string): boolean {
  if (isObject(left) || isObject(right)) {
    const [start, end] = readInstant(left, describeLiteral(right), where);
    const [otherStart, otherEnd] = readInstant(right, describeLiteral(left), where);
    // Periods that overlap are equal.
    return comparisons[op](Number(start > otherEnd) - Number(end < otherStart), 0);
  }
  if (typeof left !== typeof right || !['string', 'number', 'boolean'].includes(typeof left))
    throw badCql2(
      where,
      `${describeLiteral(left)} and ${describeLiteral(right)} cannot be compared: use two texts, numbers, times, or truth values`,
    );
  for (const value of [left, right]) if (typeof value === 'number') readNumber(value, 'a number', where);
  return comparisons[op](left as string | number, right as string | number);
}
