/** Comparisons of two operands of CQL2 JSON. */
import { badCql2 } from '../errors.js';
import { and, type ComparisonOp, comparisons, type Filter, or, type PropertyKind } from '../filter/index.js';
import { describeLiteral, isObject, readInstant, readNumber, readText } from './read-cql2-literals.js';
import { KIND_NAMES, type Operand } from './read-cql2-operands.js';

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
