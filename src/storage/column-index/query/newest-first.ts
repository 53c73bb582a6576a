/** Rows in the order newest first, which is kept for the sorted ones: pages and counts of a time that look at few others. */
import type { TimeBound } from '../cell-directory.js';
import type { IndexRun } from '../index-run.js';
import type { RowFilter } from './index-query.js';
import { TopK } from './top-k.js';

/** How many rows of a run are of a time. */
export function countInTime(rows: IndexRun, time: TimeBound): number {
  const { columns, removed, hasGaps, cells, used, newest } = rows;
  const { start, end } = columns;
  let count = 0;
  if (cells.longestOfAll === 0) {
    // None lasts: those of the time follow each other in the order newest first.
    const first = lowerBound(newest.length, (i) => start[newest[i]] <= time.end);
    const last = lowerBound(newest.length, (i) => start[newest[i]] < time.start);
    count = Math.max(0, last - first);
    if (hasGaps) for (let i = first; i < last; i++) if (removed[newest[i]]) count--;
  } else {
    cells.visitAll(time, (from, to) => {
      count += to - from;
      if (hasGaps) for (let row = from; row < to; row++) if (removed[row]) count--;
    });
  }
  for (let row = cells.rows; row < used; row++)
    if (!removed[row] && start[row] <= time.end && end[row] >= time.start) count++;
  return count;
}

/** The first selected rows of a run, of those that follow a place in this order, without a look at the others. */
export function firstNewest(
  rows: IndexRun,
  where: RowFilter | undefined,
  time: TimeBound | undefined,
  limit: number,
  follows: (row: number) => boolean = () => true,
): number[] {
  const { newest, removed, cells, used, columns } = rows;
  const { start, end } = columns;
  const [since, until] = time ? [time.start - cells.longestOfAll, time.end] : [-Infinity, Infinity];
  const matches = (row: number) =>
    removed[row] === 0 &&
    (!time || (start[row] <= time.end && end[row] >= time.start)) &&
    (!where || where(row));
  const tail = new TopK(limit, (a, b) => rows.compareNewest(a, b));
  for (let row = cells.rows; row < used; row++) if (follows(row) && matches(row)) tail.offer(row);
  const first = tail.rows();
  const from = lowerBound(newest.length, (i) => start[newest[i]] <= until && follows(newest[i]));
  const most = first.length + limit;
  for (let place = from; place < newest.length && first.length < most; place++) {
    const row = newest[place];
    // What began earlier has ended before the time.
    if (start[row] < since) break;
    if (matches(row)) first.push(row);
  }
  return first.sort((a, b) => rows.compareNewest(a, b)).slice(0, limit);
}

/** The first number below `count` for which `is` holds, where it holds for all that follow; else `count`. */
function lowerBound(count: number, is: (i: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
