/** Reading the rows of several runs in one order, in steps. */
import type { IndexRun } from '../index-run.js';

/** Compares row `i` of `a` with row `j` of `b`. */
export type RowCompare = (a: IndexRun, i: number, b: IndexRun, j: number) => number;

/** A list of rows of one run, in order, and the place up to which it has been read. */
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

  /** Whether another row follows. */
  advance(): boolean {
    this.row = this.list[++this.at];
    return !this.isEmpty;
  }
}

/** Calls `take` for the rows of all lists in their common order. Yields after each `step` rows and at the end. */
export function* mergeInOrder(
  lists: SortedRows[],
  compare: RowCompare,
  step: number,
  take: (rows: IndexRun, row: number) => void,
): Generator<void> {
  const after = (p: SortedRows, q: SortedRows) => compare(p.rows, p.row, q.rows, q.row);
  // Lists by their first row. A list is moved back after each of its rows; mostly one has several rows in turn.
  const open = lists.filter(({ isEmpty }) => !isEmpty).sort(after);
  for (let taken = 1; open.length > 0; taken++) {
    const first = open[0];
    take(first.rows, first.row);
    if (first.advance()) {
      let place = 1;
      for (; place < open.length && after(first, open[place]) > 0; place++) open[place - 1] = open[place];
      open[place - 1] = first;
    } else open.shift();
    if (taken % step === 0) yield;
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
