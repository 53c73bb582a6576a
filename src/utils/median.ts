/**
 * Returns the median of ascending values. `sorted` must not be empty. If the number of values is even, the median is the mean of the two
 * middle values.
 */
export function medianOfSorted(sorted: Float64Array): number {
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
