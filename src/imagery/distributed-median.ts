/**
 * The exact median of values on several nodes, in two rounds without sending all values. In the first round each node returns every k-th of
 * its sorted values, which bounds the median. In the second round it returns the values within these bounds.
 */

/** A sample of sorted values: the first, every `step`th after it, and the last. */
export interface QuantileSketch {
  count: number;
  step: number;
  values: number[];
}

/** Both bounds are inclusive. */
export type MedianBounds = readonly [low: number, high: number];

/** Values within bounds. */
export interface ValuesInBounds {
  /** Number of all values. */
  count: number;
  /** Number of values below the bounds. */
  below: number;
  /** Distinct values within the bounds, ascending, and how often each occurs. */
  values: [value: number, count: number][];
}

/** Approximate number of values of a sketch. */
const SKETCH_SIZE = 256;

/** `sorted`: ascending. */
export function quantileSketch(sorted: Float64Array): QuantileSketch {
  const count = sorted.length;
  const step = Math.max(1, Math.ceil(count / SKETCH_SIZE));
  const values: number[] = [];
  for (let i = 0; i < count; i += step) values.push(sorted[i]);
  if (count > 0 && (count - 1) % step !== 0) values.push(sorted[count - 1]);
  return { count, step, values };
}

/** Bounds that certainly contain the middle value, or the two middle values, of all nodes; undefined if there are no values. */
export function medianBounds(sketches: QuantileSketch[]): MedianBounds | undefined {
  const [lower, upper] = medianRanks(sketches);
  const candidates = Float64Array.from(sketches.flatMap(({ values }) => values)).sort();
  // At most the values before the n-th value of a node are below it.
  const mostBelow = (value: number) =>
    sumOf(sketches, ({ count, step, values }) => {
      const first = values.findIndex((one) => one >= value);
      return first < 0 ? count : Math.min(first * step, count - 1);
    });
  const leastUpTo = (value: number) =>
    sumOf(sketches, ({ count, step, values }) => {
      const last = values.findLastIndex((one) => one <= value);
      return last < 0 ? 0 : Math.min(last * step, count - 1) + 1;
    });
  const low = candidates.findLast((value) => mostBelow(value) <= lower);
  const high = candidates.find((value) => leastUpTo(value) > upper);
  return low === undefined || high === undefined ? undefined : [low, high];
}

/** `sorted`: ascending. */
export function valuesInBounds(sorted: Float64Array, [low, high]: MedianBounds): ValuesInBounds {
  const found: ValuesInBounds = { count: sorted.length, below: 0, values: [] };
  for (const value of sorted) {
    if (value < low) found.below++;
    if (value < low || value > high) continue;
    const last = found.values.at(-1);
    if (last?.[0] === value) last[1]++;
    else found.values.push([value, 1]);
  }
  return found;
}

/** The median of all nodes; undefined if it is not within the bounds, because values have changed. */
export function medianWithin(parts: ValuesInBounds[]): number | undefined {
  const [lower, upper] = medianRanks(parts);
  const values = parts.flatMap((part) => part.values).sort(([a], [b]) => a - b);
  let rank = sumOf(parts, ({ below }) => below);
  if (rank > lower) return undefined;
  let first: number | undefined;
  for (const [value, count] of values) {
    rank += count;
    if (first === undefined && rank > lower) first = value;
    if (rank > upper) return (first! + value) / 2;
  }
  return undefined;
}

/** Ranks of the two middle values, from 0; both are equal if the number of values is odd. */
function medianRanks(parts: { count: number }[]): [number, number] {
  const count = sumOf(parts, (part) => part.count);
  return [Math.floor((count - 1) / 2), Math.floor(count / 2)];
}

export function sumOf<T>(items: T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
