/** Rows that the latest commits of a replica have added and removed, so that the index can be read as of an earlier commit. */
import { commitTooOld } from '../errors.js';
import { KEPT_FOR_UNDO, OBSOLETE, type RowRef } from './run.js';

/** Minimum time for which a commit is kept, unless too many rows change in the meantime. */
const MIN_KEPT_MS = 60_000;
/** Maximum number of kept rows, and of removed ones among them: the records of their tiles are kept as well. */
const MAX_ROWS = 100_000;
const MAX_REMOVED_ROWS = 20_000;

/** The index before a commit. */
interface IndexState {
  size: number;
  changes: number;
}

interface RowChange extends IndexState {
  seq: number;
  /** Time of the commit, ms. */
  at: number;
  added: RowRef[];
  removed: RowRef[];
}

/**
 * Invariants: outside of a commit `list` has the changes of consecutive commits, of which `newest` is the last one, and these are
 * all changes of the index since the first of them; any other change of the index clears the list. The rows that they have
 * removed have the mark `KEPT_FOR_UNDO`, and no other rows have it.
 */
export class UndoLog {
  private list: RowChange[] = [];
  private open: RowChange | undefined;
  private newest = 0;
  private rows = 0;
  private removed = 0;

  /** The earliest commit as of which the index can be read. */
  get oldest(): number {
    return this.newest - this.list.length;
  }

  /** True if a commit follows the last one. */
  isNext(seq: number): boolean {
    return seq === this.newest + 1;
  }

  /** Begins a commit: rows that are added and removed before `end` belong to it. A commit that does not follow the last one is not kept. */
  begin(seq: number, before: IndexState, at: number): void {
    if (this.isNext(seq)) {
      this.open = { ...before, seq, at, added: [], removed: [] };
      this.list.push(this.open);
    } else this.clear();
    this.newest = seq;
  }

  end(): void {
    const { list } = this;
    const last = this.open;
    if (!last) return;
    this.open = undefined;
    this.rows += last.added.length + last.removed.length;
    this.removed += last.removed.length;
    const isDue = ({ at }: RowChange) =>
      at < last.at - MIN_KEPT_MS || this.rows > MAX_ROWS || this.removed > MAX_REMOVED_ROWS;
    let due = 0;
    for (; due < list.length && isDue(list[due]); due++) this.drop(list[due]);
    list.splice(0, due);
  }

  add(ref: RowRef): void {
    if (this.open) this.open.added.push(ref);
    else this.clear();
  }

  /** Marks the row of a removed tile. */
  remove(ref: RowRef): void {
    if (this.open) this.open.removed.push(ref);
    else this.clear();
    ref.rows.mark(ref.row, this.open ? KEPT_FOR_UNDO : OBSOLETE);
  }

  /** Declares that the index is as of commit `seq`; earlier ones cannot be read. */
  restart(seq: number): void {
    this.clear();
    this.newest = seq;
  }

  clear(): void {
    for (const change of this.list) this.drop(change);
    this.list = [];
  }

  /** The changes after a commit, in ascending order. Throws TW_STORAGE_TOO_OLD. */
  changesAfter(seq: number): readonly RowChange[] {
    if (seq < this.oldest) throw commitTooOld(seq, this.oldest);
    return seq >= this.newest ? [] : this.list.slice(seq - this.newest);
  }

  /** Updates rows that a compaction has moved. `moved` returns the new row, or the row itself if it was not moved. */
  move(moved: (ref: RowRef) => RowRef): void {
    for (const change of this.list) {
      change.added = change.added.map(moved);
      change.removed = change.removed.map(moved);
    }
  }

  private drop({ added, removed }: RowChange): void {
    this.rows -= added.length + removed.length;
    this.removed -= removed.length;
    for (const { rows, row } of removed) rows.mark(row, OBSOLETE);
  }
}

/**
 * Marks rows as they were before some changes, until `redo` is called. `restoredById` has the restored rows that cannot be found by
 * their cell.
 */
export function rewind(changes: readonly RowChange[]) {
  const restoredById = new Map<string, RowRef>();
  for (const { added, removed } of changes.toReversed()) {
    for (const ref of removed.toReversed()) {
      const { rows, row } = ref;
      rows.removed[row] = 0;
      if (!rows.isFoundByCell(row)) restoredById.set(rows.idOf(row), ref);
    }
    for (const { rows, row } of added) {
      rows.removed[row] = OBSOLETE;
      rows.hasGaps = true;
    }
  }
  const redo = () => {
    for (const { added, removed } of changes) {
      for (const { rows, row } of added) rows.removed[row] = 0;
      for (const { rows, row } of removed) rows.removed[row] = KEPT_FOR_UNDO;
    }
  };
  return { restoredById, redo };
}
