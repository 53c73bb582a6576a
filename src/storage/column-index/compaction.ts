/**
 * Merges runs into one, in steps of a few milliseconds, and decides which runs are merged, and when. Between steps, the runs can be read
 * and their rows marked.
 */

import {
  allocateColumnsInSteps,
  type Columns,
  columnNames,
  DICTIONARIES,
  type Dictionary,
} from './columns.js';
import {
  compareCells,
  compareNewest,
  IndexRun,
  KEPT_FOR_UNDO,
  type Mark,
  OBSOLETE,
  type RowRef,
} from './run.js';
import { sortRows } from './sort-order.js';

/** Compares row `i` of `a` with row `j` of `b`. */
type RowCompare = (a: IndexRun, i: number, b: IndexRun, j: number) => number;

/** A sorted list of rows of one run, with a read position. */
class SortedRows {
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
function* mergeInOrder(
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

const STEP_ROWS = 4_096;
/** Marks a code that is not translated yet. */
const NO_CODE = 2 ** 32 - 1;

type Column = Columns[keyof Columns];

export interface CompactionResult {
  rows: IndexRun;
  /** The new row of a row of one of the merged runs; rows of other runs are returned unchanged. */
  moved: (ref: RowRef) => RowRef;
}

/**
 * Merges runs into a sorted one without removed rows, and without unused texts and names. No rows may be added to
 * the runs from the first step on. Marks that are set during the merge are copied in the last step, so the result is
 * valid in the turn of the event loop in which it is returned.
 */
export function* compactRuns(runs: readonly IndexRun[], step = STEP_ROWS): Generator<void, CompactionResult> {
  for (const run of runs) run.marked = [];
  const rowCount = sumOver(runs, (run) => run.rowCount - run.obsolete);
  const maxCells = sumOver(runs, ({ cells, unsorted }) => cells.size + unsorted);
  const rows = IndexRun.empty(yield* allocateColumnsInSteps(rowCount), Math.min(rowCount, maxCells));
  rows.hasPartialCells = runs.some((run) => run.hasPartialCells);
  const copies = new Map<IndexRun, RowCopier>();
  for (const run of runs) {
    copies.set(run, new RowCopier(run, rows, step));
    yield;
  }

  const byCell: SortedRows[] = [];
  const byTime: SortedRows[] = [];
  for (const run of runs) {
    byCell.push(new SortedRows(run, yield* rowNumbers(0, run.cells.rows, step)));
    byTime.push(new SortedRows(run, run.newest));
    const unsorted = yield* rowNumbers(run.cells.rows, run.rowCount, step);
    if (unsorted.length === 0) continue;
    byCell.push(new SortedRows(run, yield* sortRows(unsorted, (a, b) => run.compareCells(a, b), step)));
    byTime.push(new SortedRows(run, yield* sortRows(unsorted, (a, b) => run.compareNewest(a, b), step)));
  }

  const keptForUndo: number[] = [];
  const copyRow = (run: IndexRun, row: number) => {
    const mark = run.removed[row];
    if (mark === OBSOLETE) return;
    const target = copies.get(run)!.add(row);
    if (mark === KEPT_FOR_UNDO) keptForUndo.push(target);
  };
  let registered = 0;
  for (const _ of mergeInOrder(byCell, compareCells, step, copyRow)) {
    for (const copy of copies.values()) copy.flush();
    rows.cells.extend(rows.rowCount);
    for (const target of keptForUndo.splice(0)) rows.mark(target, KEPT_FOR_UNDO);
    for (; registered < rows.rowCount; registered++) if (!rows.removed[registered]) rows.register(registered);
    yield;
  }

  rows.newest = new Uint32Array(rows.rowCount);
  yield;
  rows.rank = new Uint32Array(rows.rowCount);
  let rank = 0;
  yield* mergeInOrder(byTime, compareNewest, step, (run, row) => {
    const target = copies.get(run)!.target(row);
    if (target === undefined) return;
    rows.rank[target] = rank;
    rows.newest[rank++] = target;
  });

  for (const [run, copy] of copies) {
    for (const row of run.marked!) {
      const target = copy.target(row);
      const mark = run.removed[row];
      if (target !== undefined && rows.removed[target] !== mark) rows.mark(target, mark as Mark);
    }
    run.marked = undefined;
  }
  const moved = (ref: RowRef) => {
    const row = copies.get(ref.rows)?.target(ref.row);
    return row === undefined ? ref : { rows, row };
  };
  return { rows, moved };
}

function sumOver(runs: readonly IndexRun[], count: (run: IndexRun) => number): number {
  return runs.reduce((total, run) => total + count(run), 0);
}

function* rowNumbers(first: number, end: number, step: number): Generator<void, Uint32Array> {
  const all = new Uint32Array(end - first);
  for (let i = 0; i < all.length; i++) {
    all[i] = first + i;
    if (i % step === step - 1) yield;
  }
  return all;
}

/**
 * Copies rows of one run to another one.
 * Invariants: `targets[row]` is the number of the copy of a row plus 1, or 0 if it has none. All copies are written, except those of
 * the rows in `pending`.
 */
class RowCopier {
  private readonly targets: Uint32Array;
  private readonly pending: Uint32Array;
  private readonly targetRows: Uint32Array;
  private count = 0;
  private readonly translators: [column: keyof Columns, CodeTranslator][];

  /** At most `step` rows are added before a `flush`. */
  constructor(
    private readonly from: IndexRun,
    private readonly to: IndexRun,
    step: number,
  ) {
    this.targets = new Uint32Array(from.rowCount);
    this.pending = new Uint32Array(step);
    this.targetRows = new Uint32Array(step);
    this.translators = DICTIONARIES.map(([column, name]) => [
      column,
      new CodeTranslator(from[name], to[name]),
    ]);
  }

  /** The copy of a row. */
  target(row: number): number | undefined {
    const target = this.targets[row];
    return target === 0 ? undefined : target - 1;
  }

  add(row: number): number {
    const target = this.to.reserve(1);
    this.targets[row] = target + 1;
    this.pending[this.count] = row;
    this.targetRows[this.count++] = target;
    return target;
  }

  flush(): void {
    const { to } = this;
    const pending = this.pending.subarray(0, this.count);
    const targetRows = this.targetRows.subarray(0, this.count);
    this.count = 0;
    for (const name of columnNames)
      copyValues(this.from.columns[name], pending, to.columns[name], targetRows);
    for (const [column, translator] of this.translators) translator.translate(to.columns[column], targetRows);
    const { suffix } = to.columns;
    for (const row of targetRows) suffix[row] = to.texts.copy(this.from.texts, suffix[row]);
  }
}

/** Translates codes of one dictionary to another one, to which it adds names when they are first used. */
class CodeTranslator {
  private readonly known: Uint32Array;

  constructor(
    private readonly from: Dictionary,
    private readonly to: Dictionary,
  ) {
    this.known = new Uint32Array(from.names.length).fill(NO_CODE);
  }

  translate(codes: Column, rows: Uint32Array): void {
    for (const row of rows) {
      const code = codes[row];
      if (this.known[code] === NO_CODE) this.known[code] = this.to.add(this.from.names[code]);
      codes[row] = this.known[code];
    }
  }
}

/** `to[targetRows[i]] = from[rows[i]]`, in two columns of one type. */
function copyValues(from: Column, rows: Uint32Array, to: Column, targetRows: Uint32Array): void {
  const read = toFewArrayTypes(from);
  const write = toFewArrayTypes(to);
  for (let i = 0; i < rows.length; i++) write[targetRows[i]] = read[rows[i]];
}

/** V8 generates fast code for at most four kinds of arrays in one place. */
function toFewArrayTypes(column: Column): Column {
  return column instanceof Float32Array
    ? new Uint32Array(column.buffer, column.byteOffset, column.length)
    : column;
}

/** Limits that decide when runs are merged. */
export interface CompactionLimits {
  /** Maximum number of unsorted rows before a merge. */
  maxTailRows: number;
  /** Rows that a merge processes between two turns of the event loop. */
  rowsPerStep: number;
}

export const DEFAULT_LIMITS: CompactionLimits = { maxTailRows: 4_096, rowsPerStep: 4_096 };

/** After a merge, each run is at least this many times as long as all shorter ones together. */
const MIN_SIZE_RATIO = 3;

/** Numbers of rows of a run. */
interface RunSize {
  /** All rows: sorted, unsorted and obsolete ones. */
  rowCount: number;
  unsorted: number;
  /** Rows that a merge drops. */
  obsolete: number;
}

const liveRows = ({ rowCount, obsolete }: RunSize) => rowCount - obsolete;

/** True if a merge would drop most rows of a run. */
export function isMostlyDeleted(run: RunSize, { maxTailRows }: CompactionLimits): boolean {
  return run.obsolete > liveRows(run) + maxTailRows;
}

export function isTailCompactionDue(runs: readonly RunSize[], { maxTailRows }: CompactionLimits): boolean {
  return runs.reduce((sum, { unsorted }) => sum + unsorted, 0) > maxTailRows;
}

/**
 * The runs to merge: those with unsorted rows and the shorter ones, up to the first that is `MIN_SIZE_RATIO` times as long as all
 * merged runs. The cost of a merge is proportional to its rows, and each row moves to a run that is longer by a constant factor on
 * average. So the total cost of a row, over all merges, and the number of runs are logarithmic in the number of rows.
 */
export function runsToCompact<R extends RunSize>(runs: readonly R[]): R[] {
  const merged = runs.filter(({ unsorted }) => unsorted > 0);
  let rows = merged.reduce((sum, run) => sum + liveRows(run), 0);
  const sorted = runs.filter(({ unsorted }) => unsorted === 0);
  for (const run of sorted.sort((a, b) => liveRows(a) - liveRows(b))) {
    if (liveRows(run) >= MIN_SIZE_RATIO * rows) break;
    merged.push(run);
    rows += liveRows(run);
  }
  return merged;
}
