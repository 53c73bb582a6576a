/** The columns of all tiles that searches read, in memory. */
import { setImmediate } from 'node:timers/promises';
import type { TileRecord } from '../records/records.js';
import { type CompactionResult, compactRuns } from './compaction/compaction.js';
import {
  type CompactionLimits,
  DEFAULT_LIMITS,
  isMostlyDeleted,
  isTailCompactionDue,
  runsToCompact,
} from './compaction/compaction-policy.js';
import { IndexRun, type RowRef } from './index-run.js';
import type { IndexPage, IndexQuery, Selection } from './query/index-query.js';
import { mergePages, type RunMatches } from './query/merge-results.js';
import { countInTime, firstNewest } from './query/newest-first.js';
import { type RowVisit, visitSelected } from './query/select-rows.js';
import {
  type Cursor,
  cursorComparator,
  isNewestFirst,
  rowComparator,
  type SortOrder,
} from './query/sort-order.js';
import { TopK } from './query/top-k.js';
import type { RunImage } from './run-image.js';
import { parseTileId } from './tile-id-parser.js';
import { rewind, UndoLog } from './undo-log.js';

const NEWEST_FIRST: SortOrder = [];
/** A longer tail is merged at once if it is also longer than all other runs together. */
const MAX_UNSORTED_ROWS = 65_536;

interface CompactionState {
  sources: IndexRun[];
  steps: Generator<void, CompactionResult>;
}

/**
 * All tiles as runs of columns. New tiles go to the tail, a run that is not sorted. Merges turn the tail and shorter runs into
 * longer ones, so that there are few (`compaction-policy.ts`).
 *
 * Invariants: each present tile has one present row, in any of the runs. Rows are added to `tail` only, so the sources of a merge
 * do not grow. Queries are synchronous and see one state of the index; a row number is valid until the index changes or a
 * merge ends, which happens in a later turn of the event loop.
 */
export class ColumnIndex {
  /** All runs but the tail. */
  private runs: IndexRun[] = [];
  private tail = IndexRun.empty();
  private present = 0;
  private changed = 0;
  private compaction: CompactionState | undefined;
  private readonly undoLog = new UndoLog();
  /** During `asOf`: restored rows that are not found by their cell. */
  private restoredById: Map<string, RowRef> | undefined;

  constructor(private readonly limits: CompactionLimits = DEFAULT_LIMITS) {}

  /** Number of tiles. */
  get size(): number {
    return this.present;
  }

  /** Increases with every change of the content: a result computed at the same number is still valid. */
  get changes(): number {
    return this.changed;
  }

  has(id: string): boolean {
    return this.find(id) !== undefined;
  }

  /** Whether the index has the same values of a tile as its record. */
  agrees(record: TileRecord): boolean {
    const found = this.find(record.id);
    return found?.rows.agrees(found.row, record) ?? false;
  }

  /** Replaces everything. */
  load(records: Iterable<TileRecord>): void {
    this.replace([]);
    for (const record of records) this.append(record);
    this.compactTail();
  }

  /** Replaces everything by the content of an index when it made these images, whose arrays become its own. */
  restore(images: readonly RunImage[]): void {
    const runs = images.map((image) => new IndexRun(image));
    // What was the tail remains it, so that restarts do not leave many short runs.
    const tail = runs.findLast(({ cells }) => cells.rows === 0);
    this.replace(
      runs.filter((run) => run !== tail),
      tail,
    );
  }

  /** The present content, for `restore`: an image of each run that has rows. They do not change with the index. */
  images(): RunImage[] {
    return this.filledRuns().map((run) => run.image());
  }

  /** Adds tiles; a tile with a known id replaces the former one. */
  add(records: Iterable<TileRecord>): void {
    for (const record of records) this.append(record);
    const sorted = this.runs.reduce((sum, { used }) => sum + used, 0);
    if (this.tail.used > Math.max(MAX_UNSORTED_ROWS, sorted)) this.compactTail();
  }

  /** Removes tiles by their ids; unknown ids are ignored. */
  remove(ids: Iterable<string>): void {
    for (const id of ids) this.drop(id);
  }

  // As of a commit

  /**
   * Applies commit `seq` of a cluster. Its changes are kept for a while. If it does not follow the last commit, earlier changes are
   * forgotten.
   */
  commit(seq: number, removed: Iterable<string>, added: Iterable<TileRecord>, now = performance.now()): void {
    this.undoLog.begin(seq, { size: this.size, changes: this.changes }, now);
    try {
      this.remove(removed);
      this.add(added);
    } finally {
      this.undoLog.end();
    }
  }

  /** Declares the index to be as of commit `seq`; it cannot be read as of earlier ones. */
  startAt(seq: number): void {
    this.undoLog.restart(seq);
  }

  /** The earliest commit as of which the index can be read. */
  get oldest(): number {
    return this.undoLog.oldest;
  }

  /** Whether a commit is the one after the last. */
  isNext(seq: number): boolean {
    return this.undoLog.isNext(seq);
  }

  /**
   * Runs `work`, which is synchronous and changes nothing, on the index as it was after commit `seq`, and returns its result. The time
   * to undo later commits grows with the number of their rows. Throws TW_STORAGE_TOO_OLD.
   */
  asOf<T>(seq: number, work: () => T): T {
    const later = this.undoLog.changesAfter(seq);
    if (later.length === 0) return work();
    const { present, changed } = this;
    const { formerById, redo } = rewind(later);
    this.restoredById = formerById;
    this.present = later[0].size;
    this.changed = later[0].changes;
    try {
      return work();
    } finally {
      redo();
      this.present = present;
      this.changed = changed;
      this.restoredById = undefined;
    }
  }

  // Queries

  /**
   * Calls `visitorOf` for each run that has rows, and the visitor that it returns for every selected row of this run, in no
   * particular order. Neither the visitors nor `where` change the index.
   */
  forEach(selection: Selection, visitorOf: (rows: IndexRun) => RowVisit): void {
    const { where } = selection;
    const runs = this.filledRuns().map((rows) => ({ rows, test: where?.(rows), visit: visitorOf(rows) }));
    visitSelected(runs, selection, (id) => this.find(id));
  }

  /** The page of a query, and the number of tiles that match it. */
  query(query: IndexQuery): IndexPage {
    const {
      order = NEWEST_FIRST,
      limit = Infinity,
      withCursors = false,
      count = true,
      where,
      ranges,
      ids,
    } = query;
    const canWalk = !ranges && !ids && isNewestFirst(order) && limit > 0 && (!where || !count);
    const { parts, matched } = canWalk ? this.walk(query, limit + 1) : this.scan(query, order, limit);
    return mergePages(parts, matched, order, limit, withCursors);
  }

  /** The first newest rows of each run, without reading the others. */
  private walk({ where, time, after, count = true }: IndexQuery, most: number) {
    const parts = this.filledRuns().map((rows): RunMatches => {
      const follows = after && rowsAfter(rows, NEWEST_FIRST, after);
      return { rows, found: firstNewest(rows, where?.(rows), time, most, follows) };
    });
    if (!count) return { parts, matched: parts.reduce((sum, { found }) => sum + found.length, 0) };
    if (!time) return { parts, matched: this.size };
    return { parts, matched: parts.reduce((sum, { rows }) => sum + countInTime(rows, time), 0) };
  }

  /** The first rows of each run, of all that are selected. */
  private scan(query: IndexQuery, order: SortOrder, limit: number) {
    const { after } = query;
    let matched = 0;
    const parts: { rows: IndexRun; first: TopK }[] = [];
    this.forEach(query, (rows) => {
      const follows = after && rowsAfter(rows, order, after);
      const first = new TopK(limit > 0 ? limit + 1 : 0, rowComparator(rows, order));
      parts.push({ rows, first });
      return (row) => {
        matched++;
        if (follows === undefined || follows(row)) first.offer(row);
      };
    });
    return { parts: parts.map(({ rows, first }): RunMatches => ({ rows, found: first.rows() })), matched };
  }

  private find(id: string): RowRef | undefined {
    const former = this.restoredById?.get(id);
    // A tile of a later commit may have the same id.
    if (former && !former.rows.removed[former.row]) return former;
    const inTail = this.tail.findById(id);
    if (inTail !== undefined) return { rows: this.tail, row: inTail };
    for (const rows of this.runs) {
      const row = rows.findById(id);
      if (row !== undefined) return { rows, row };
    }
    for (let parts = parseTileId(id); parts; parts = parseTileId(id, parts.names.length)) {
      for (const rows of this.runs) {
        const row = rows.findInCell(parts);
        if (row !== undefined) return { rows, row };
      }
    }
    return undefined;
  }

  private filledRuns(): IndexRun[] {
    return this.tail.used > 0 ? [...this.runs, this.tail] : this.runs;
  }

  // Changes

  private replace(runs: IndexRun[], tail = IndexRun.empty()): void {
    this.undoLog.clear();
    this.compaction = undefined;
    this.runs = runs;
    this.tail = tail;
    this.present = this.filledRuns().reduce((sum, { present }) => sum + present, 0);
    this.changed++;
  }

  private append(record: TileRecord): void {
    const { tail } = this;
    const row = tail.append(record);
    this.drop(record.id);
    tail.register(row, record.id);
    this.undoLog.add({ rows: tail, row });
    this.present++;
    this.changed++;
  }

  private drop(id: string): void {
    const found = this.find(id);
    if (!found) return;
    this.undoLog.remove(found);
    this.present--;
    this.changed++;
  }

  // Merging

  /** Whether queries would gain from a merge: the tail is long, or most rows of a run are gone. */
  get needsCompaction(): boolean {
    const runs = this.filledRuns();
    return isTailCompactionDue(runs, this.limits) || runs.some((run) => isMostlyDeleted(run, this.limits));
  }

  /** Sorts the tail at once. */
  compactTail(): void {
    if (this.compaction) this.finishCompaction(this.compaction);
    while (this.filledRuns().some(({ unsorted }) => unsorted > 0))
      this.finishCompaction(this.beginCompaction());
  }

  /** Merges runs, if the index is untidy, in steps between which the event loop turns. */
  async compact(): Promise<void> {
    while (!this.compaction && this.needsCompaction) {
      const merging = this.beginCompaction();
      this.compaction = merging;
      // `merge` may end this merge and others.
      while (this.compaction === merging) {
        const step = merging.steps.next();
        if (step.done) this.endCompaction(merging, step.value);
        await setImmediate();
      }
    }
  }

  private beginCompaction(): CompactionState {
    const runs = this.filledRuns();
    const isDue = isTailCompactionDue(runs, this.limits);
    const mostlyGone = runs.find((run) => isMostlyDeleted(run, this.limits));
    const sources = mostlyGone && !isDue ? [mostlyGone] : runsToCompact(runs);
    if (sources.includes(this.tail)) {
      this.runs = runs;
      this.tail = IndexRun.empty();
    }
    return { sources, steps: compactRuns(sources, this.limits.step) };
  }

  private finishCompaction(merging: CompactionState): void {
    let step = merging.steps.next();
    while (!step.done) step = merging.steps.next();
    this.endCompaction(merging, step.value);
  }

  private endCompaction({ sources }: CompactionState, { rows, moved }: CompactionResult): void {
    this.undoLog.move(moved);
    this.runs = this.runs.filter((run) => !sources.includes(run));
    if (rows.used > 0) this.runs.push(rows);
    this.compaction = undefined;
  }
}

function rowsAfter(rows: IndexRun, order: SortOrder, after: Cursor): (row: number) => boolean {
  const compare = cursorComparator(rows, order);
  return (row) => compare(row, after) > 0;
}
