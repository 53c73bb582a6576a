import type { ComparisonOp } from './filter-tree.js';

/** Comparisons of two values. A comparison with NaN is false. */
export const comparisons: Record<ComparisonOp, <T extends string | number>(one: T, value: T) => boolean> = {
  '=': (one, value) => one === value,
  '<>': (one, value) => one < value || one > value,
  '<': (one, value) => one < value,
  '<=': (one, value) => one <= value,
  '>': (one, value) => one > value,
  '>=': (one, value) => one >= value,
};
