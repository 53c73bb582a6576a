/** Comparisons of two values. A comparison with NaN is false. */
export const comparisons = {
  '=': (one, value) => one === value,
  '<>': (one, value) => one < value || one > value,
  '<': (one, value) => one < value,
  '<=': (one, value) => one <= value,
  '>': (one, value) => one > value,
  '>=': (one, value) => one >= value,
} satisfies Record<string, <T extends string | number>(one: T, value: T) => boolean>;

export type ComparisonOp = keyof typeof comparisons;
