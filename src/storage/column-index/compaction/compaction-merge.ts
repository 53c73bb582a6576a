/** Reads the rows of several runs in one order, in steps. */
import type { IndexRun } from '../index-run.js';

/** Compares row `i` of `a` with row `j` of `b`. */
type RowCompare = (a: IndexRun, i: number, b: IndexRun, j: number) => number;

/** A sorted list of rows of one run, with a read position. */
export class SortedRows {
  row: number;
  private at = 0;

  constructor(
    readonly rows: IndexRun,
    private readonly list: Uint32Array,
  ) {
    this.row = list[0];
  }

  get isEmpty(): boolean {
    return this.at === this.list.length;
  }

  /** Moves to the next row; false if there is none. */
  advance(): boolean {
    this.row = this.list[++this.at];
    return !this.isEmpty;
  }
}

/** Calls `visit` for the rows of all lists in their common order. Yields after each `step` rows and at the end. */
export function* mergeInOrder(
  lists: SortedRows[],
  compare: RowCompare,
  step: number,
  visit: (rows: IndexRun, row: number) => void,
): Generator<void> {
  const after = (p: SortedRows, q: SortedRows) => compare(p.rows, p.row, q.rows, q.row);
  // Lists ordered by their current row. A list moves back after each of its rows; consecutive rows mostly come from one list.
  const open = lists.filter(({ isEmpty }) => !isEmpty).sort(after);
  for (let visited = 1; open.length > 0; visited++) {
    const first = open[0];
    visit(first.rows, first.row);
    if (first.advance()) {
      let i = 1;
      for (; i < open.length && after(first, open[i]) > 0; i++) open[i - 1] = open[i];
      open[i - 1] = first;
    } else open.shift();
    if (visited % step === 0) yield;
  }
  yield;
}

/** Sorts rows of one run. Yields after at most `step` rows. */
export function* sortRows(
  rows: Uint32Array,
  compare: (a: number, b: number) => number,
  step: number,
): Generator<void, Uint32Array> {
  if (rows.length <= step) {
    const sorted = rows.toSorted(compare);
    yield;
    return sorted;
  }
  const half = rows.length >> 1;
  const list = yield* sortRows(rows.subarray(0, half), compare, step);
  const other = yield* sortRows(rows.subarray(half), compare, step);
  const all = new Uint32Array(rows.length);
  let i = 0;
  let j = 0;
  for (let at = 0; at < all.length; at++) {
    const takeOther = i === list.length || (j < other.length && compare(other[j], list[i]) < 0);
    all[at] = takeOther ? other[j++] : list[i++];
    if (at % step === 0) yield;
  }
  return all;
}
