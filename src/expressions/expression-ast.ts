/** The syntax tree of expressions over bands. */

export type Operator = '+' | '-' | '*' | '/' | '**' | '<' | '<=' | '>' | '>=' | '==' | '!=';

/** Functions and their number of arguments; `Infinity` means two or more. */
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
