/** Expressions over bands: what can be said in them. */

export type Operator = '+' | '-' | '*' | '/' | '**' | '<' | '<=' | '>' | '>=' | '==' | '!=';

/** Functions and how many arguments they take; `Infinity` for two and more. */
export const FUNCTIONS = {
  where: 3,
  min: Infinity,
  max: Infinity,
  abs: 1,
  sqrt: 1,
  log: 1,
} as const;

export type FunctionName = keyof typeof FUNCTIONS;

export type Expression =
  | { kind: 'number'; value: number }
  | { kind: 'band'; name: string; position: number }
  | { kind: 'negate'; operand: Expression }
  | { kind: 'operation'; operator: Operator; left: Expression; right: Expression }
  | { kind: 'call'; name: FunctionName; args: Expression[] };
