/** The median and range of several runs, and the comparison of two of them. */
import { median } from '../../html/index.js';

export interface Spread {
  median: number;
  least: number;
  most: number;
  /** Number of values. */
  count: number;
}

/** Without values, all figures are NaN. */
export function computeSpread(values: number[]): Spread {
  if (values.length === 0) return { median: NaN, least: NaN, most: NaN, count: 0 };
  return {
    median: median(values),
    least: Math.min(...values),
    most: Math.max(...values),
    count: values.length,
  };
}

const MIN_RUNS = 3;

type Verdict = 'less' | 'more' | 'within the spread' | 'too few runs';

/** Returns `less` or `more` only if the ranges do not overlap and both have three runs. */
export function compareSpreads(ours: Spread, theirs: Spread): Verdict {
  if (Math.min(ours.count, theirs.count) < MIN_RUNS) return 'too few runs';
  if (ours.most < theirs.least) return 'less';
  return ours.least > theirs.most ? 'more' : 'within the spread';
}

/** Returns text such as `1.23 (1.20 to 1.31)`, or `-` without values. */
export function spreadText({ median, least, most, count }: Spread, write = digits): string {
  if (count === 0) return '-';
  return least === most ? write(median) : `${write(median)} (${write(least)} to ${write(most)})`;
}

/** A number with three significant digits. */
export const digits = (value: number): string =>
  Math.abs(value) < 0.01 && value !== 0 ? value.toExponential(2) : String(Number(value.toPrecision(3)));

/** Positive or negative bytes with a suitable unit. */
export function bytesText(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${digits(value / 1e9)} GB`;
  if (size >= 1e6) return `${digits(value / 1e6)} MB`;
  return size >= 1e3 ? `${digits(value / 1e3)} kB` : `${value.toFixed(0)} B`;
}
