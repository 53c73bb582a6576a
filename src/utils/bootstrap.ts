/** Confidence intervals from the units of a sample, such as places, dates or blocks of ground. */
import { randomStream } from './random.js';

/** Fewer units say too little about others. */
export const MIN_UNITS = 6;
const ROUNDS = 2000;
const SEED = 1;
/** Quantile of the normal distribution at 97.5 %. */
const NORMAL_975 = 1.959964;

export type Interval = [low: number, high: number];

/**
 * Returns the 95 % interval of a statistic by the expanded percentile bootstrap, whose tails are those of Student's t (Efron and Tibshirani
 * 1993, section 13.3; Hesterberg 2015). `sizes`: the number of units of each factor, one or more; the factors are drawn independently, as
 * places and dates that cross. `statistic` gets for each factor how often each unit was drawn. Undefined with fewer than six units of a
 * factor, or if no draw has a finite statistic. The same numbers give the same interval.
 */
export function bootstrapInterval(
  sizes: readonly number[],
  statistic: (...drawn: Uint32Array[]) => number,
): Interval | undefined {
  return bootstrapIntervals(sizes, (...drawn) => [statistic(...drawn)])[0];
}

/** The intervals of several statistics of the same draws; an empty list with too few units. */
export function bootstrapIntervals(
  sizes: readonly number[],
  statistics: (...drawn: Uint32Array[]) => readonly number[],
): (Interval | undefined)[] {
  if (sizes.some((size) => size < MIN_UNITS)) return [];
  const random = randomStream(SEED);
  const rounds = Array.from({ length: ROUNDS }, () =>
    statistics(...sizes.map((size) => drawnCounts(size, random.next))),
  );
  const tail = expandedTail(Math.min(...sizes));
  return rounds[0]!.map((_, s) => {
    const sorted = Float64Array.from(rounds, (values) => values[s]!)
      .filter(Number.isFinite)
      .sort();
    if (sorted.length === 0) return undefined;
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
    return [at(tail), at(1 - tail)];
  });
}

/** Percentiles of few units are too narrow, by the divisor n in place of n - 1 and by the normal in place of Student's distribution. */
function expandedTail(units: number): number {
  const z = NORMAL_975;
  const n = units - 1;
  // Abramowitz and Stegun 1964, 26.7.5 and 7.1.26.
  const student =
    z +
    (z ** 3 + z) / (4 * n) +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * n ** 2) +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * n ** 3);
  const x = (student * Math.sqrt(units / n)) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const terms = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
  return (terms.reduce((sum, term) => (sum + term) * t, 0) * Math.exp(-x * x)) / 2;
}

function drawnCounts(size: number, random: () => number): Uint32Array {
  const counts = new Uint32Array(size);
  for (let i = 0; i < size; i++) counts[Math.floor(random() * size)]!++;
  return counts;
}
