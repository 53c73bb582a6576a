/**
 * Queries of the column index: select the rows of each run, keep the first ones in an order, and merge them into one page. Queries run in
 * steps of less than a few milliseconds, between which they yield.
 */

import { firstIndex } from '../../utils/sorted.js';
import {
  type CellKeyRange,
  type CodedKeyRange,
  isWithin,
  mergeRanges,
  type TimeBound,
} from './cell-directory.js';
import type { IndexRun, RowRef } from './run.js';
import { type Cursor, compareCursors, cursorOf, type SortOrder, sortRows } from './sort-order.js';

export type RowFilter = (row: number) => boolean;

/** Creates a test of the rows of one run. The test is valid until the index changes. */
export type RunFilter = (rows: IndexRun) => RowFilter;

/** Selects tiles that meet every given condition. */
export interface Selection {
  /** Called once for each run that has rows. The test is called only for present rows that meet the other conditions. */
  where?: RunFilter;
  /** Only rows in these ranges, which may overlap. */
  ranges?: readonly CellKeyRange[];
  /** Only these tiles. */
  ids?: Iterable<string>;
  /** Only tiles whose time overlaps this, ends included. */
  time?: TimeBound;
}

export interface IndexQuery extends Selection {
  /** Newest first by default. */
  order?: SortOrder;
  /** The page begins after this cursor. */
  after?: Cursor;
  /** Maximum number of ids of a page; all if undefined. */
  limit?: number;
  /** False if `matched` is not needed, which saves time on newest-first pages with `where` and without ranges and ids. */
  count?: boolean;
  /** Set to return the cursor of each tile. */
  withCursors?: boolean;
}

export interface IndexPage {
  /** Tile ids in the order of the query. */
  ids: string[];
  /** Number of matching tiles, including those before and after this page; with `count` false it may be any smaller number. */
  matched: number;
  /** The cursor of the last id, if more tiles match after it. */
  next?: Cursor;
  /** The cursors of the ids, if the query asks for them. */
  cursors?: Cursor[];
}

export type RowVisit = (row: number) => void;

/** Rows that are visited in one step of a query. A test of a row may take a tenth of a millisecond. */
const ROWS_PER_STEP = 256;

/**
 * The rows of a run at the time at which a query began. The query ignores rows that are added later, and no row changes, so only the marks
 * of removed rows are copied, before the index can change.
 */
export class RunView {
  readonly rowCount: number;
  readonly hasGaps: boolean;
  private removed: Uint8Array;

  constructor(readonly rows: IndexRun) {
    this.rowCount = rows.rowCount;
    this.hasGaps = rows.hasGaps;
    this.removed = rows.removed;
  }

  /** Copies the marks. The index may change afterwards. */
  keep(): void {
    if (this.hasGaps) this.removed = this.removed.slice(0, this.rowCount);
  }

  isRemoved(row: number): boolean {
    return this.hasGaps && this.removed[row] !== 0;
  }
}

/** A run, the test of its rows, and the visitor of those that pass. */
interface RunVisit {
  view: RunView;
  test: RowFilter | undefined;
  visit: RowVisit;
}

/** Visits the present rows of runs that are within the bounds of a selection and pass the test of their run. */
export function* visitSelected(
  runs: readonly RunVisit[],
  { ranges, ids, time }: Selection,
  find: (id: string) => RowRef | undefined,
): Generator<void> {
  const disjoint = ranges && mergeRanges(ranges);
  if (!ids) {
    for (const run of runs) yield* visitRun(run, disjoint, time);
    return;
  }
  // All of them are found before the index can change.
  const refs = [...new Set(ids)].flatMap((id) => find(id) ?? []);
  for (const [i, { rows, row }] of refs.entries()) {
    const { test, visit } = runs.find(({ view }) => view.rows === rows)!;
    if (isInBounds(rows, row, disjoint, time) && (!test || test(row))) visit(row);
    if (i % ROWS_PER_STEP === 0) yield;
  }
}

function* visitRun(
  { view, test, visit }: RunVisit,
  ranges: CodedKeyRange[] | undefined,
  time: TimeBound | undefined,
): Generator<void> {
  const { rows, rowCount } = view;
  const visitRows = (from: number, to: number) => {
    for (let row = from; row < to; row++)
      if (!view.isRemoved(row) && (test === undefined || test(row))) visit(row);
  };
  let rowsOfStep = 0;
  for (const spans of rows.cells.spans(ranges, time)) {
    for (let i = 0; i < spans.length; i += 2)
      for (let from = spans[i]; from < spans[i + 1]; ) {
        const to = Math.min(spans[i + 1], from + ROWS_PER_STEP);
        visitRows(from, to);
        rowsOfStep += to - from;
        from = to;
        if (rowsOfStep < ROWS_PER_STEP) continue;
        yield;
        rowsOfStep = 0;
      }
    yield;
  }
  for (let row = rows.cells.rows; row < rowCount; row++) {
    if (isInBounds(rows, row, ranges, time)) visitRows(row, row + 1);
    if (row % ROWS_PER_STEP === 0) yield;
  }
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

/**
 * Keeps the first rows in an order, up to a limit, of all offered rows.
 * Invariant: when `heap` has as many rows as the limit, it is a binary heap with the last row of the order at the top: row `i`
 * comes after the rows `2i + 1` and `2i + 2`.
 */
export class TopK {
  private readonly heap: number[] = [];

  /** `compare` is negative if the first row comes before the second one. */
  constructor(
    private readonly limit: number,
    private readonly compare: (a: number, b: number) => number,
  ) {}

  offer(row: number): void {
    const { heap } = this;
    if (heap.length < this.limit) {
      heap.push(row);
      if (heap.length === this.limit) for (let i = heap.length >> 1; i >= 0; i--) this.sink(heap[i], i);
    } else if (heap.length > 0 && this.compare(row, heap[0]) < 0) this.sink(row, 0);
  }

  /** The kept rows in order. */
  rows(): Generator<void, Uint32Array> {
    return sortRows(Uint32Array.from(this.heap), this.compare, ROWS_PER_STEP);
  }

  /** Puts a row at index `at` of the heap or below it. */
  private sink(row: number, at: number): void {
    const { heap, compare } = this;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && compare(heap[child + 1], heap[child]) > 0) child++;
      if (compare(heap[child], row) <= 0) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = row;
  }
}

/** Number of present rows of a run that overlap a time. */
export function* countInTime(view: RunView, time: TimeBound): Generator<void, number> {
  const { rows, rowCount } = view;
  const { columns, cells, newest } = rows;
  const { start, end } = columns;
  let count = 0;
  const countRows = (from: number, to: number, rowAt: (i: number) => number) => {
    for (let i = from; i < to; i++) if (!view.isRemoved(rowAt(i))) count++;
  };
  if (cells.longestOfAll === 0) {
    // All tiles have a duration of 0, so those of the time are consecutive in the order newest first.
    const first = firstIndex(newest.length, (i) => start[newest[i]] <= time.end);
    const last = firstIndex(newest.length, (i) => start[newest[i]] < time.start);
    if (!view.hasGaps) count = Math.max(0, last - first);
    else
      for (let i = first; i < last; i += ROWS_PER_STEP) {
        countRows(i, Math.min(last, i + ROWS_PER_STEP), (at) => newest[at]);
        yield;
      }
  } else
    for (const spans of cells.spans(undefined, time)) {
      for (let i = 0; i < spans.length; i += 2)
        if (view.hasGaps) countRows(spans[i], spans[i + 1], (row) => row);
        else count += spans[i + 1] - spans[i];
      yield;
    }
  for (let row = cells.rows; row < rowCount; row++) {
    if (!view.isRemoved(row) && start[row] <= time.end && end[row] >= time.start) count++;
    if (row % ROWS_PER_STEP === 0) yield;
  }
  return count;
}

/**
 * The first `limit` selected rows of a run for which `follows` is true. Runs store the order newest first of their sorted rows, so few
 * other rows are read.
 */
export function* firstNewest(
  view: RunView,
  where: RowFilter | undefined,
  time: TimeBound | undefined,
  limit: number,
  follows: (row: number) => boolean = () => true,
): Generator<void, number[]> {
  const { rows, rowCount } = view;
  const { newest, cells, columns } = rows;
  const { start, end } = columns;
  const [since, until] = time ? [time.start - cells.longestOfAll, time.end] : [-Infinity, Infinity];
  const matches = (row: number) =>
    !view.isRemoved(row) &&
    (!time || (start[row] <= time.end && end[row] >= time.start)) &&
    (!where || where(row));
  const tail = new TopK(limit, (a, b) => rows.compareNewest(a, b));
  for (let row = cells.rows; row < rowCount; row++) {
    if (follows(row) && matches(row)) tail.offer(row);
    if (row % ROWS_PER_STEP === 0) yield;
  }
  const unsorted = yield* tail.rows();
  let next = 0;
  const first: number[] = [];
  // Both lists are in order, so the next row is the first of either.
  const takeUnsorted = (before?: number) => {
    for (; next < unsorted.length && first.length < limit; next++) {
      if (before !== undefined && rows.compareNewest(unsorted[next], before) > 0) return;
      first.push(unsorted[next]);
    }
  };
  const from = firstIndex(newest.length, (i) => start[newest[i]] <= until && follows(newest[i]));
  for (let i = from; i < newest.length && first.length < limit; i++) {
    const row = newest[i];
    // All further rows have ended before the time.
    if (start[row] < since) break;
    if (matches(row)) {
      takeUnsorted(row);
      if (first.length < limit) first.push(row);
    }
    if (i % ROWS_PER_STEP === 0) yield;
  }
  takeUnsorted();
  return first;
}

/** Rows of one run, in the order of the query. */
export interface RunMatches {
  rows: IndexRun;
  found: ArrayLike<number>;
}

/** The first `limit` rows of all runs; if there are more, `next` is the cursor of the last one. */
export function* mergePages(
  parts: readonly RunMatches[],
  matched: number,
  order: SortOrder,
  limit: number,
  withCursors: boolean,
): Generator<void, IndexPage> {
  const filled = parts.filter(({ found }) => found.length > 0);
  // Ids cost less than cursors.
  if (filled.length === 1 && !withCursors) return yield* idsInOrder(filled[0], matched, order, limit);
  const cursors = yield* firstCursors(filled, order, limit);
  const page: IndexPage = { ids: cursors.map(({ id }) => id), matched };
  if (withCursors) page.cursors = cursors;
  if (filled.reduce((sum, { found }) => sum + found.length, 0) > limit) page.next = cursors.at(-1);
  return page;
}

function* idsInOrder(
  { rows, found }: RunMatches,
  matched: number,
  order: SortOrder,
  limit: number,
): Generator<void, IndexPage> {
  const ids: string[] = [];
  const count = Math.min(limit, found.length);
  for (let i = 0; i < count; i++) {
    ids.push(rows.idOf(found[i]));
    if (i % ROWS_PER_STEP === 0) yield;
  }
  const page: IndexPage = { ids, matched };
  if (found.length > limit) page.next = cursorOf(rows, order, found[count - 1]);
  return page;
}

function* firstCursors(
  parts: readonly RunMatches[],
  order: SortOrder,
  limit: number,
): Generator<void, Cursor[]> {
  const heads = parts.map(({ rows, found }) => ({
    rows,
    found,
    at: 0,
    cursor: cursorOf(rows, order, found[0]),
  }));
  const cursors: Cursor[] = [];
  while (heads.length > 0 && cursors.length < limit) {
    let first = 0;
    for (let i = 1; i < heads.length; i++)
      if (compareCursors(heads[i].cursor, heads[first].cursor, order) < 0) first = i;
    const head = heads[first];
    cursors.push(head.cursor);
    if (++head.at < head.found.length) head.cursor = cursorOf(head.rows, order, head.found[head.at]);
    else heads.splice(first, 1);
    if (cursors.length % ROWS_PER_STEP === 0) yield;
  }
  return cursors;
}
