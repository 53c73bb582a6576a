/** Confidence intervals from the units of a sample, such as places, dates or blocks of ground. */
import { randomStream } from './random.js';

/** Fewer units say too little about others. */
export const MIN_UNITS = 6;
const ROUNDS = 2000;
const SEED = 1;
const TAIL = 0.025;

export type Interval = [low: number, high: number];

/**
 * Returns the 95 % interval of a statistic by the percentile bootstrap (Efron and Tibshirani 1993, section 13.3). `sizes`: the number of
 * units of each factor, one or more; the factors are drawn independently, as places and dates that cross. `statistic` gets for each
 * factor how often each unit was drawn. Undefined with fewer than six units of a factor, or if no draw has a finite statistic. The same
 * numbers give the same interval.
 */
export function bootstrapInterval(
  sizes: readonly number[],
  statistic: (...drawn: Uint32Array[]) => number,
): Interval | undefined {
  if (sizes.some((size) => size < MIN_UNITS)) return undefined;
  const random = randomStream(SEED);
  const values: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const value = statistic(...sizes.map((size) => drawnCounts(size, random.next)));
    if (Number.isFinite(value)) values.push(value);
  }
  if (values.length === 0) return undefined;
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  return [at(TAIL), at(1 - TAIL)];
}

function drawnCounts(size: number, random: () => number): Uint32Array {
  const counts = new Uint32Array(size);
  for (let i = 0; i < size; i++) counts[Math.floor(random() * size)]!++;
  return counts;
}
