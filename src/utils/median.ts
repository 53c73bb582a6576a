/** The median of at least one value; an even number of values has the mean of two. `sorted`: ascending. */
export function medianOfSorted(sorted: Float64Array): number {
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
