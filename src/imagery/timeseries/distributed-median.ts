/**
 * The exact median of values that lie in several places, found in two rounds without moving them: each place first gives every so manieth of
 * its values in order; these bound the median; then it counts what it has within the bounds.
 */

/** Of the values of a place, in ascending order: the first, every `step`th after it, and the last. */
export interface QuantileSketch {
  count: number;
  step: number;
  values: number[];
}

/** Both included. */
export type MedianBounds = readonly [low: number, high: number];

/** What of a place lies below some bounds, and what within them: values in ascending order, and how often each is there. */
export interface ValuesInBounds {
  count: number;
  below: number;
  values: [value: number, count: number][];
}

/** Values of a sketch, about. */
const SKETCH_SIZE = 256;

/** Of values in ascending order. */
export function quantileSketch(sorted: Float64Array): QuantileSketch {
  const count = sorted.length;
  const step = Math.max(1, Math.ceil(count / SKETCH_SIZE));
  const values: number[] = [];
  for (let i = 0; i < count; i += step) values.push(sorted[i]);
  if (count > 0 && (count - 1) % step !== 0) values.push(sorted[count - 1]);
  return { count, step, values };
}

/** Bounds that surely hold the middle value, or the two in the middle, of all places; undefined where there are no values. */
export function medianBounds(sketches: QuantileSketch[]): MedianBounds | undefined {
  const [lower, upper] = medianRanks(sketches);
  const candidates = Float64Array.from(sketches.flatMap(({ values }) => values)).sort();
  // No value of a place is below its n-th one but those before it.
  const mostBelow = (value: number) =>
    sum(sketches, ({ count, step, values }) => {
      const first = values.findIndex((one) => one >= value);
      return first < 0 ? count : Math.min(first * step, count - 1);
    });
  const leastUpTo = (value: number) =>
    sum(sketches, ({ count, step, values }) => {
      const last = values.findLastIndex((one) => one <= value);
      return last < 0 ? 0 : Math.min(last * step, count - 1) + 1;
    });
  const low = candidates.findLast((value) => mostBelow(value) <= lower);
  const high = candidates.find((value) => leastUpTo(value) > upper);
  return low === undefined || high === undefined ? undefined : [low, high];
}

/** Of values in ascending order. */
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

/** The median of all places; undefined where it is not within the bounds, because the values are others now. */
export function medianWithin(parts: ValuesInBounds[]): number | undefined {
  const [lower, upper] = medianRanks(parts);
  const values = parts.flatMap((part) => part.values).sort(([a], [b]) => a - b);
  let rank = sum(parts, ({ below }) => below);
  if (rank > lower) return undefined;
  let first: number | undefined;
  for (const [value, count] of values) {
    rank += count;
    if (first === undefined && rank > lower) first = value;
    if (rank > upper) return (first! + value) / 2;
  }
  return undefined;
}

/** Of at least one value, in ascending order. */
export function medianOfSorted(sorted: Float64Array): number {
  const [lower, upper] = medianRanks([{ count: sorted.length }]);
  return (sorted[lower] + sorted[upper]) / 2;
}

/** Ranks of the value in the middle, twice, or of the two in the middle, from 0. */
function medianRanks(parts: { count: number }[]): [number, number] {
  const count = sum(parts, (part) => part.count);
  return [Math.floor((count - 1) / 2), Math.floor(count / 2)];
}

function sum<T>(items: T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
