/**
 * One axis divided into equal cells. An edge is always computed by the same expression, so neighbouring cells share it bit
 * for bit. The same holds for cells of other counts that differ by a power of two (scaling by two is exact).
 */
export interface GridAxis {
  from: number;
  to: number;
  /** A power of two. */
  count: number;
}

/** The lower edge of cell `index`; the upper edge of the cell before it. */
export function edge(axis: GridAxis, index: number): number {
  return axis.from + index * ((axis.to - axis.from) / axis.count);
}

/**
 * Index of the cell that contains a coordinate of the axis: lower edge <= value < upper edge, and the last cell also contains
 * the end of the axis. The quotient is only a first guess, because it is rounded; the edges decide.
 */
export function cellAt(axis: GridAxis, value: number): number {
  const guess = Math.floor(((value - axis.from) / (axis.to - axis.from)) * axis.count);
  let index = Math.min(Math.max(guess, 0), axis.count - 1);
  while (index > 0 && value < edge(axis, index)) index--;
  while (index < axis.count - 1 && value >= edge(axis, index + 1)) index++;
  return index;
}

/** First and last cell that overlap [low, high] by more than an edge; undefined if the interval is outside of the axis. */
export function cellsBetween(
  axis: GridAxis,
  low: number,
  high: number,
): [first: number, last: number] | undefined {
  const start = Math.max(low, axis.from);
  const end = Math.min(high, axis.to);
  if (!(start <= end) || (start === end && low < high)) return undefined;
  const first = cellAt(axis, start);
  const last = cellAt(axis, end);
  return [first, last > first && edge(axis, last) === end ? last - 1 : last];
}
