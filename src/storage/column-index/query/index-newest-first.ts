/** Pages and counts in the order newest first. Runs store this order of their sorted rows, so few other rows are read. */
import { firstIndex } from '../../../utils/bisection.js';
import type { TimeBound } from '../index-cell-directory.js';
import type { IndexRun } from '../index-run.js';
import type { RowFilter } from './column-query.js';
import { TopK } from './index-top-k.js';

/** Number of present rows of a run that overlap a time. */
export function countInTime(rows: IndexRun, time: TimeBound): number {
  const { columns, removed, hasGaps, cells, rowCount, newest } = rows;
  const { start, end } = columns;
  let count = 0;
  if (cells.longestOfAll === 0) {
    // All tiles have a duration of 0, so those of the time are consecutive in the order newest first.
    const first = firstIndex(newest.length, (i) => start[newest[i]] <= time.end);
    const last = firstIndex(newest.length, (i) => start[newest[i]] < time.start);
    count = Math.max(0, last - first);
    if (hasGaps) for (let i = first; i < last; i++) if (removed[newest[i]]) count--;
  } else {
    cells.visitAll(time, (from, to) => {
      count += to - from;
      if (hasGaps) for (let row = from; row < to; row++) if (removed[row]) count--;
    });
  }
  for (let row = cells.rows; row < rowCount; row++)
    if (!removed[row] && start[row] <= time.end && end[row] >= time.start) count++;
  return count;
}

/** The first `limit` selected rows of a run for which `follows` is true. It does not read all other rows. */
export function firstNewest(
  rows: IndexRun,
  where: RowFilter | undefined,
  time: TimeBound | undefined,
  limit: number,
  follows: (row: number) => boolean = () => true,
): number[] {
  const { newest, removed, cells, rowCount, columns } = rows;
  const { start, end } = columns;
  const [since, until] = time ? [time.start - cells.longestOfAll, time.end] : [-Infinity, Infinity];
  const matches = (row: number) =>
    removed[row] === 0 &&
    (!time || (start[row] <= time.end && end[row] >= time.start)) &&
    (!where || where(row));
  const tail = new TopK(limit, (a, b) => rows.compareNewest(a, b));
  for (let row = cells.rows; row < rowCount; row++) if (follows(row) && matches(row)) tail.offer(row);
  const first = tail.rows();
  const from = firstIndex(newest.length, (i) => start[newest[i]] <= until && follows(newest[i]));
  const maxRows = first.length + limit;
  for (let i = from; i < newest.length && first.length < maxRows; i++) {
    const row = newest[i];
    // All further rows have ended before the time.
    if (start[row] < since) break;
    if (matches(row)) first.push(row);
  }
  return first.sort((a, b) => rows.compareNewest(a, b)).slice(0, limit);
}
