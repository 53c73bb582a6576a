/** Figures of several runs, and what may be said of two of them. */
import { median } from '../bench.js';

export interface Spread {
  median: number;
  least: number;
  most: number;
  /** Of values. */
  count: number;
}

export function spreadOf(values: number[]): Spread {
  return {
    ...{ median: median(values), least: Math.min(...values), most: Math.max(...values) },
    count: values.length,
  };
}

const LEAST_RUNS = 3;

/** Where the ranges touch, or the runs are few, nothing is said. */
export function verdict(
  ours: Spread,
  theirs: Spread,
): 'less' | 'more' | 'within the spread' | 'too few runs' {
  if (Math.min(ours.count, theirs.count) < LEAST_RUNS) return 'too few runs';
  if (ours.most < theirs.least) return 'less';
  return ours.least > theirs.most ? 'more' : 'within the spread';
}

/** `1.23 (1.20 to 1.31)`. */
export function told({ median, least, most }: Spread, write = digits): string {
  return least === most ? write(median) : `${write(median)} (${write(least)} to ${write(most)})`;
}

/** To three digits. */
export const digits = (value: number): string =>
  Math.abs(value) < 0.01 && value !== 0 ? value.toExponential(2) : String(Number(value.toPrecision(3)));
