/** Expressions in filters. Plain JSON. Readers replace expressions without a property by their value. */
import type { ArithmeticOp } from './filter-arithmetic.js';
import type { NumberProperty, PropertyName, TextProperty, TimeProperty } from './filter-properties.js';
import type { FoldingFunction } from './filter-text-folding.js';

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

type Expression = TextExpression | NumberExpression | PeriodExpression | PeriodEnd;

/** The properties in an expression, possibly more than once. */
export function propertiesOf(expression: Expression): PropertyName[] {
  if (typeof expression !== 'object' || expression === null) return [];
  if ('property' in expression) return [expression.property];
  if ('arg' in expression) return propertiesOf(expression.arg);
  return ('interval' in expression ? expression.interval : expression.args).flatMap(propertiesOf);
}

/** Number of functions and operators in an expression. */
export function operatorCount(expression: Expression): number {
  if (typeof expression !== 'object' || expression === null || !('op' in expression)) return 0;
  if ('arg' in expression) return 1 + operatorCount(expression.arg);
  return 1 + operatorCount(expression.args[0]) + operatorCount(expression.args[1]);
}
