/** Visits the rows of a selection. */
import type { TimeBound } from '../index-cell-directory.js';
import { type CodedKeyRange, isWithin, mergeRanges } from '../index-key-range.js';
import type { IndexRun, RowRef } from '../index-run.js';
import type { RowFilter, Selection } from './column-query.js';

export type RowVisit = (row: number) => void;

/** A run, the test of its rows, and the visitor of those that pass. */
interface RunVisit {
  rows: IndexRun;
  test: RowFilter | undefined;
  visit: RowVisit;
}

/** Visits the present rows of runs that are within the bounds of a selection and pass the test of their run. */
export function visitSelected(
  runs: readonly RunVisit[],
  { ranges, ids, time }: Selection,
  find: (id: string) => RowRef | undefined,
): void {
  const disjoint = ranges && mergeRanges(ranges);
  if (!ids) {
    for (const run of runs) visitRun(run, disjoint, time);
    return;
  }
  for (const id of new Set(ids)) {
    const found = find(id);
    if (!found) continue;
    const { rows, row } = found;
    const { test, visit } = runs.length === 1 ? runs[0] : runs.find((run) => run.rows === rows)!;
    if (isInBounds(rows, row, disjoint, time) && (!test || test(row))) visit(row);
  }
}

function visitRun(
  { rows, test, visit }: RunVisit,
  ranges: CodedKeyRange[] | undefined,
  time: TimeBound | undefined,
): void {
  const { removed, hasGaps, cells, rowCount } = rows;
  const visitRows = (from: number, to: number) => {
    for (let row = from; row < to; row++)
      if (!(hasGaps && removed[row]) && (test === undefined || test(row))) visit(row);
  };
  if (ranges) cells.visit(ranges, time, visitRows);
  else cells.visitAll(time, visitRows);
  for (let row = cells.rows; row < rowCount; row++)
    if (isInBounds(rows, row, ranges, time)) visitRows(row, row + 1);
}

function isInBounds(
  { columns: { grid, key, start, end } }: IndexRun,
  row: number,
  ranges: CodedKeyRange[] | undefined,
  time: TimeBound | undefined,
): boolean {
  return (
    (!ranges || isWithin(ranges, grid[row], key[row])) &&
    (!time || (start[row] <= time.end && end[row] >= time.start))
  );
}
