/** Sorted values: bisection and median. */

/**
 * Returns the first of `count` indexes for which `holds` is true, by bisection; `count` if there is none. It must be true for all later
 * indexes.
 */
export function firstIndex(count: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Returns the median of ascending values. `sorted` must not be empty. If the number of values is even, the median is the mean of the two
 * middle values.
 */
export function medianOfSorted(sorted: Float64Array): number {
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
