/** The operands of conditions in CQL2 JSON: properties, literals, and expressions of these. */
import { badCql2, filterTooComplex, unsupportedCql2 } from '../errors.js';
import {
  type ArithmeticOp,
  arithmeticOps,
  calculate,
  checkPatterns,
  checkText,
  type FoldingFunction,
  foldingFunctions,
  foldPattern,
  MAX_DEPTH,
  type NumberExpression,
  type PropertyKind,
  parsePropertyName,
  propertyKind,
  type TextExpression,
  type TimeExpression,
} from '../filter/index.js';
import { describeLiteral, isObject } from './read-cql2-literals.js';

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
