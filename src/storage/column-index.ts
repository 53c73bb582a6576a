/** The columns of all tiles that searches read, in memory. */
import { setImmediate } from 'node:timers/promises';
import { type GridName, grids } from '../geocode/index.js';
import type { TimeBound } from './cell-directory.js';
import type { Columns, Dictionary } from './columns.js';
import { FirstRows } from './first-rows.js';
import type { IndexPage, IndexQuery, Selection } from './index-query.js';
import { isWithin, mergeRanges } from './key-range.js';
import { type Merged, mergeRows } from './merge-rows.js';
import { countOfTime, firstNewest } from './newest-first.js';
import type { TileRecord } from './records.js';
import { RowJournal, undo } from './row-journal.js';
import {
  isNewestFirst,
  type Position,
  placeComparison,
  positionOf,
  type RowOrder,
  rowComparison,
} from './row-order.js';
import { Rows, SharedNames } from './rows.js';
import type { RowsImage } from './rows-image.js';

const NEWEST_FIRST: RowOrder = [];
/** A tail is worth a merge where it is longer than an eighth of the sorted rows, within these limits. */
const SHORTEST_TAIL = 4_096;
const LONGEST_TAIL = 16_384;
/** A longer tail is merged at once where it is more than what is sorted. */
const OVERDUE = 65_536;

/**
 * All tiles as columns: most of them sorted by cell and time, the latest ones in a tail behind them.
 *
 * Invariants: each present tile has one row that is not marked as removed. `rowsById` has the rows that are not found by
 * their cell: those of the tail and those with an odd id. Queries do not wait and see one state of the index; a row number
 * is good until the index changes or a merge ends, which is in a later turn of the event loop.
 */
export class ColumnIndex {
  private names = new SharedNames();
  private rows = Rows.empty(this.names, 0);
  private rowsById = new Map<string, number>();
  private present = 0;
  private changed = 0;
  private merging: Generator<void, Merged> | undefined;
  private readonly journal = new RowJournal();
  /** During `asOf`: rows that only the earlier commit has, of tiles that are not found by their cell. */
  private formerById: Map<string, number> | undefined;

  /** Number of tiles. */
  get size(): number {
    return this.present;
  }

  /** Goes up with every change of what it holds: what was found out at the same number still holds. */
  get changes(): number {
    return this.changed;
  }

  get columns(): Columns {
    return this.rows.columns;
  }

  get collections(): Dictionary {
    return this.names.collections;
  }

  get platforms(): Dictionary {
    return this.names.platforms;
  }

  get sources(): Dictionary {
    return this.names.sources;
  }

  get scenes(): Dictionary {
    return this.rows.scenes;
  }

  idOf(row: number): string {
    return this.rows.idOf(row);
  }

  cellOf(row: number): { grid: GridName; geocode: string } {
    return { grid: grids[this.rows.columns.grid[row]].name, geocode: this.rows.geocodeOf(row) };
  }

  has(id: string): boolean {
    return this.rowOf(id) !== undefined;
  }

  /** Whether it says of a tile what its record says. */
  agrees(record: TileRecord): boolean {
    const row = this.rowOf(record.id);
    return row !== undefined && this.rows.agrees(row, record);
  }

  /** Replaces everything. */
  load(records: Iterable<TileRecord>): void {
    this.rows = Rows.empty(this.names, 0);
    this.rowsById = new Map();
    this.present = 0;
    this.changed++;
    this.merging = undefined;
    this.journal.clear();
    for (const record of records) this.append(record);
    this.merge();
  }

  /** Replaces everything by what an index was when it gave this image; the image's arrays become its own. */
  restore(image: RowsImage): void {
    this.names = new SharedNames(image.names);
    this.rows = new Rows(this.names, image);
    this.rowsById = new Map();
    this.present = 0;
    this.changed++;
    this.merging = undefined;
    this.journal.clear();
    const { removed, used } = this.rows;
    for (let row = 0; row < used; row++) {
      if (removed[row]) continue;
      this.present++;
      if (!this.rows.isFoundByCell(row)) this.rowsById.set(this.idOf(row), row);
    }
  }

  /** All that it holds now, for `restore`. It stays as it is when the index changes. */
  image(): RowsImage {
    return this.rows.image();
  }

  /** Adds tiles; a tile of a known id takes the place of the former one. */
  add(records: Iterable<TileRecord>): void {
    for (const record of records) this.append(record);
    if (this.unsorted > Math.max(OVERDUE, this.rows.cells.rows)) this.merge();
  }

  /** Removes tiles by their ids; unknown ids are passed over. */
  remove(ids: Iterable<string>): void {
    for (const id of ids) this.drop(id);
  }

  // As of a commit

  /**
   * Takes in commit `seq` of a cluster. What it changes is remembered for a while; where it does not follow the last one, only what
   * comes after it.
   */
  commit(seq: number, removed: Iterable<string>, added: Iterable<TileRecord>, now = performance.now()): void {
    this.journal.begin(seq, { size: this.size, changes: this.changes }, now);
    try {
      this.remove(removed);
      this.add(added);
    } finally {
      this.journal.end();
    }
  }

  /** It is as of commit `seq`, and what was before is not known. */
  startAt(seq: number): void {
    this.journal.restart(seq);
  }

  /** The earliest commit as of which it can be read. */
  get oldest(): number {
    return this.journal.oldest;
  }

  /** Whether a commit is the one after the last. */
  isNext(seq: number): boolean {
    return this.journal.isNext(seq);
  }

  /**
   * What `work` gives while the index is as it was after commit `seq`; `work` does not wait and changes nothing. Later commits are
   * undone for it, which takes as long as they have rows. Throws TW_STORAGE_TOO_OLD.
   */
  asOf<T>(seq: number, work: () => T): T {
    const later = this.journal.after(seq);
    if (later.length === 0) return work();
    const { present, changed } = this;
    const { formerById, redo } = undo(this.rows, later);
    this.formerById = formerById;
    this.present = later[0].size;
    this.changed = later[0].changes;
    try {
      return work();
    } finally {
      redo();
      this.present = present;
      this.changed = changed;
      this.formerById = undefined;
    }
  }

  // Queries

  /** Calls `visit` for every row that is selected, in no promised order. Neither it nor `where` changes the index. */
  forEach({ where, ranges, ids, time }: Selection, visit: (row: number) => void): void {
    const { columns, removed, hasGaps, cells, used } = this.rows;
    const { grid, key, start, end } = columns;
    const disjoint = ranges && mergeRanges(ranges);
    const isThere = (row: number) =>
      (!disjoint || isWithin(disjoint, grid[row], key[row])) &&
      (!time || (start[row] <= time.end && end[row] >= time.start));
    const visitRun = (from: number, to: number) => {
      for (let row = from; row < to; row++)
        if (!(hasGaps && removed[row]) && (where === undefined || where(row))) visit(row);
    };
    if (ids) {
      for (const id of new Set(ids)) {
        const row = this.rowOf(id);
        if (row !== undefined && isThere(row)) visitRun(row, row + 1);
      }
      return;
    }
    if (disjoint) cells.visit(disjoint, time, visitRun);
    else cells.visitAll(time, visitRun);
    for (let row = cells.rows; row < used; row++) if (isThere(row)) visitRun(row, row + 1);
  }

  /** The page of a query, and how many tiles match it in all. */
  query(query: IndexQuery): IndexPage {
    const { order = NEWEST_FIRST, after, limit = Infinity, count = true, places = false, ...which } = query;
    const follows = after && this.rowsAfter(order, after);
    const canWalk = !which.ranges && !which.ids && isNewestFirst(order) && limit > 0;
    if (canWalk && (!which.where || !count)) {
      const rows = firstNewest(this.rows, which, limit + 1, follows);
      return this.page(order, rows, limit, places, count ? this.countOf(which.time) : rows.length);
    }
    const first = new FirstRows(limit > 0 ? limit + 1 : 0, rowComparison(this.rows, order));
    let matched = 0;
    this.forEach(which, (row) => {
      matched++;
      if (follows === undefined || follows(row)) first.offer(row);
    });
    return this.page(order, first.rows(), limit, places, matched);
  }

  /** The page of the first rows, of which one more than the limit tells that others follow. */
  private page(
    order: RowOrder,
    rows: number[],
    limit: number,
    withPlaces: boolean,
    matched: number,
  ): IndexPage {
    const shown = rows.slice(0, limit);
    const places = withPlaces ? shown.map((row) => positionOf(this.rows, order, row)) : undefined;
    const ids = places ? places.map(({ id }) => id) : shown.map((row) => this.idOf(row));
    const page: IndexPage = { ids, matched, ...(places && { places }) };
    if (rows.length > limit) page.next = places?.at(-1) ?? positionOf(this.rows, order, shown.at(-1)!);
    return page;
  }

  /** How many tiles are of a time. */
  private countOf(time: TimeBound | undefined): number {
    return time ? countOfTime(this.rows, time) : this.size;
  }

  private rowsAfter(order: RowOrder, after: Position): (row: number) => boolean {
    const compare = placeComparison(this.rows, order);
    return (row) => compare(row, after) > 0;
  }

  private rowOf(id: string): number | undefined {
    const row = this.formerById?.get(id) ?? this.rowsById.get(id);
    // Only `asOf` finds one here that is not of its commit.
    return row === undefined || this.rows.removed[row] ? this.rows.find(id) : row;
  }

  private append(record: TileRecord): void {
    const row = this.rows.append(record);
    this.drop(record.id);
    this.rowsById.set(record.id, row);
    this.journal.add(row);
    this.present++;
    this.changed++;
  }

  private drop(id: string): void {
    const row = this.rowOf(id);
    if (row === undefined) return;
    this.rows.remove(row);
    this.rowsById.delete(id);
    this.journal.remove(row);
    this.present--;
    this.changed++;
  }

  // Merging

  /** Rows of the tail. */
  private get unsorted(): number {
    return this.rows.used - this.rows.cells.rows;
  }

  private get longestTail(): number {
    return Math.min(Math.max(this.rows.cells.rows / 8, SHORTEST_TAIL), LONGEST_TAIL);
  }

  /** Whether queries would gain from a merge: the tail is long, or most rows are of tiles that have gone. */
  get isUntidy(): boolean {
    const needed = this.size + this.journal.removed.size;
    return this.unsorted > this.longestTail || this.rows.used > 2 * needed + SHORTEST_TAIL;
  }

  /** Sorts what was added at once. */
  merge(): void {
    while (this.unsorted > 0) {
      const merging = this.merging ?? mergeRows(this.rows, this.journal.removed);
      let step = merging.next();
      while (!step.done) step = merging.next();
      this.take(step.value);
    }
  }

  /** Sorts what was added, where that is much, in steps between which others get their turn. */
  async tidy(): Promise<void> {
    while (!this.merging && this.isUntidy) {
      const merging = mergeRows(this.rows, this.journal.removed);
      this.merging = merging;
      // It is another one's where `merge` has ended this one.
      while (this.merging === merging) {
        const step = merging.next();
        if (step.done) this.take(step.value);
        await setImmediate();
      }
    }
  }

  private take({ rows, moved }: Merged): void {
    const rowsById = new Map<string, number>();
    for (const [id, row] of this.rowsById) {
      const to = moved(row)!;
      if (to >= rows.cells.rows || rows.isOdd(to)) rowsById.set(id, to);
    }
    this.journal.move(moved);
    this.rows = rows;
    this.rowsById = rowsById;
    this.merging = undefined;
  }
}
