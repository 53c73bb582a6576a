/** The arithmetic of CQL2 (OGC 21-065r2, section 7.12). NaN stands for an unknown number. */

/** `div` drops the fraction of the quotient; `%` is the remainder of that, with the sign of the dividend, as in SQL. */
const operators = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '%': (a, b) => a % b,
  div: (a, b) => Math.trunc(a / b),
  '^': (a, b) => a ** b,
} satisfies Record<string, (a: number, b: number) => number>;

export type ArithmeticOp = keyof typeof operators;

export const arithmeticOps = Object.keys(operators) as ArithmeticOp[];

/** Unknown if an operand is unknown or the result is not finite, as after a division by zero. */
export function calculate(op: ArithmeticOp, a: number, b: number): number {
  // NaN ** 0 is 1.
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN;
  const result = operators[op](a, b);
  return Number.isFinite(result) ? result : Number.NaN;
}
