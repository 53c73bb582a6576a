/** Medians, ranges, ratios and marks for the tables. */

import { median } from '../support/bench.js';
import { markdown } from '../training/markdown.js';

/** A target that was set before the measurement: the measured value is at most `most`. */
export interface Mark {
  name: string;
  most: number;
  measured: number;
}

const rounded = (value: number) => String(Number(value.toPrecision(3)));

/** Median with the least and the most. */
export function spread(values: number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)].map(rounded);
  const middle = rounded(median(values));
  return least === most ? middle : `${middle} (${least} to ${most})`;
}

/** Ratios of the rounds. */
export const ratios = (ours: number[], theirs: number[]): number[] =>
  ours.map((value, round) => value / theirs[round]!);

export const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(2);

export const isReached = ({ most, measured }: Mark): boolean => measured <= most;

export function markTable(marks: Mark[]): string {
  const rows = marks.map((mark) => [
    mark.name,
    rounded(mark.most),
    rounded(mark.measured),
    isReached(mark) ? 'reached' : 'missed',
  ]);
  return markdown(['mark', 'at most', 'measured', ''], rows).join('\n');
}
