/** Which rows the latest commits of a replica have added and removed, so that its index can be read as of an earlier one. */
import { tooOld } from './errors.js';
import type { Rows } from './rows.js';

/** How long a commit is remembered at least, ms, unless too much changes meanwhile. */
const KEPT = 60_000;
/** Rows that are remembered at most; and of these those of tiles that have gone, whose records are kept with them. */
const MOST_ROWS = 100_000;
const MOST_REMOVED = 20_000;

/** What an index was before a commit. */
interface Before {
  size: number;
  changes: number;
}

export interface RowChange extends Before {
  seq: number;
  /** When it came, ms. */
  at: number;
  added: number[];
  removed: number[];
}

/**
 * Invariants: outside of a commit `list` holds the changes of consecutive commits, of which `newest` is the last one, and these are
 * all changes of the index since the first of them; whatever else changes the index clears it. `removed` holds the rows that they
 * have removed.
 */
export class RowJournal {
  /** Rows of tiles that have gone and that a read as of an earlier commit may want. */
  readonly removed = new Set<number>();
  private list: RowChange[] = [];
  private open: RowChange | undefined;
  private newest = 0;
  private rows = 0;

  /** The earliest commit as of which can be read. */
  get oldest(): number {
    return this.newest - this.list.length;
  }

  /** Whether a commit is the one after the last. */
  isNext(seq: number): boolean {
    return seq === this.newest + 1;
  }

  /** A commit begins; what is added and removed until `end` is of it. One that does not follow the last one is not remembered. */
  begin(seq: number, before: Before, at: number): void {
    if (this.isNext(seq)) {
      this.open = { ...before, seq, at, added: [], removed: [] };
      this.list.push(this.open);
    } else this.clear();
    this.newest = seq;
  }

  end(): void {
    const { list, removed } = this;
    const last = this.open;
    if (!last) return;
    this.open = undefined;
    this.rows += last.added.length + last.removed.length;
    const isDue = ({ at }: RowChange) =>
      at < last.at - KEPT || this.rows > MOST_ROWS || removed.size > MOST_REMOVED;
    let due = 0;
    for (; due < list.length && isDue(list[due]); due++) {
      this.rows -= list[due].added.length + list[due].removed.length;
      for (const row of list[due].removed) removed.delete(row);
    }
    list.splice(0, due);
  }

  add(row: number): void {
    if (this.open) this.open.added.push(row);
    else this.clear();
  }

  remove(row: number): void {
    if (this.open) {
      this.open.removed.push(row);
      this.removed.add(row);
    } else this.clear();
  }

  /** The index is as of commit `seq`, and nothing is known of what was before. */
  restart(seq: number): void {
    this.clear();
    this.newest = seq;
  }

  clear(): void {
    if (this.list.length === 0) return;
    this.list = [];
    this.rows = 0;
    this.removed.clear();
  }

  /** The changes after a commit, in their order. Throws TW_STORAGE_TOO_OLD. */
  after(seq: number): readonly RowChange[] {
    if (seq < this.oldest) throw tooOld(seq, this.oldest);
    return seq >= this.newest ? [] : this.list.slice(seq - this.newest);
  }

  /** The rows have got other places. */
  move(moved: (row: number) => number | undefined): void {
    this.removed.clear();
    for (const change of this.list) {
      change.added = change.added.map((row) => moved(row)!);
      change.removed = change.removed.map((row) => moved(row)!);
      for (const row of change.removed) this.removed.add(row);
    }
  }
}

/** Marks rows as they were before some changes, until `redo`. Of the rows that come back, `formerById` has those that are not found by their cell. */
export function undo(rows: Rows, changes: readonly RowChange[]) {
  const { removed: marks, hasGaps } = rows;
  const formerById = new Map<string, number>();
  for (const { added, removed } of changes.toReversed()) {
    for (const row of removed.toReversed()) {
      marks[row] = 0;
      if (!rows.isFoundByCell(row)) formerById.set(rows.idOf(row), row);
    }
    for (const row of added) marks[row] = 1;
  }
  rows.hasGaps = true;
  const redo = () => {
    for (const { added, removed } of changes) {
      for (const row of added) marks[row] = 0;
      for (const row of removed) marks[row] = 1;
    }
    rows.hasGaps = hasGaps;
  };
  return { formerById, redo };
}
