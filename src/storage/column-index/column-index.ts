/** The in-memory columns of all tiles, for searches. */
import { setImmediate } from 'node:timers/promises';
import { runAtOnce, runInTurns } from '../../async/index.js';
import type { TileRecord } from '../records.js';
import { mergeRanges } from './cell-directory.js';
import type { RunImage } from './columns.js';
import {
  type CompactionLimits,
  type CompactionResult,
  compactRuns,
  DEFAULT_LIMITS,
  isMostlyDeleted,
  isTailCompactionDue,
  runsToCompact,
} from './compaction.js';
import {
  countInTime,
  firstNewest,
  type IndexPage,
  type IndexQuery,
  mergePages,
  type RowVisit,
  type RunMatches,
  RunView,
  type Selection,
  TopK,
  visitSelected,
} from './query.js';
import { IndexRun, parseTileId, type RowRef } from './run.js';
import { type Cursor, cursorComparator, isNewestFirst, rowComparator, type SortOrder } from './sort-order.js';
import { rewind, UndoLog } from './undo-log.js';

const NEWEST_FIRST: SortOrder = [];
/** A longer tail is merged immediately if it is also longer than all other runs together. */
const MAX_UNSORTED_ROWS = 65_536;

interface CompactionState {
  sources: IndexRun[];
  steps: Generator<void, CompactionResult>;
}

/**
 * All tiles as runs of columns. New tiles are appended to the tail, an unsorted run. Compaction merges the tail and shorter runs into
 * longer ones, which keeps the number of runs small (`compaction.ts`).
 *
 * Invariants: each present tile has one present row, in any of the runs. Rows are added to `tail` only, so the sources of a compaction
 * do not grow. A query sees the state of the index at the time of its call, even if it takes several turns of the event loop; a row number
 * is valid for the run that a query has called its visitor with, and otherwise until the index changes or a compaction ends, which happens
 * in a later turn.
 */
export class ColumnIndex {
  /** All runs except the tail. */
  private runs: IndexRun[] = [];
  private tail = IndexRun.empty();
  private present = 0;
  private changed = 0;
  private compaction: CompactionState | undefined;
  private readonly undoLog = new UndoLog();
  /** During `asOf`: restored rows that cannot be found by their cell. */
  private restoredById: Map<string, RowRef> | undefined;

  constructor(private readonly limits: CompactionLimits = DEFAULT_LIMITS) {}

  /** Number of tiles. */
  get size(): number {
    return this.present;
  }

  /** Increases with every change of the content: a result that was computed at the same number is still valid. */
  get changes(): number {
    return this.changed;
  }

  has(id: string): boolean {
    return this.find(id) !== undefined;
  }

  /** True if the index has the values of this record. */
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

  /** Replaces everything by the content of these images. The index takes over their arrays. */
  restore(images: readonly RunImage[]): void {
    const runs = images.map((image) => new IndexRun(image));
    // The former tail remains the tail, so that restarts do not leave many short runs.
    const tail = runs.findLast(({ cells }) => cells.rows === 0);
    this.replace(
      runs.filter((run) => run !== tail),
      tail,
    );
  }

  /** The current content, for `restore`: an image of each run that has rows. Later changes of the index do not affect the images. */
  images(): RunImage[] {
    return this.filledRuns().map((run) => run.image());
  }

  /** Adds tiles. A tile replaces the former one with the same id. */
  add(records: Iterable<TileRecord>): void {
    for (const record of records) this.append(record);
    const sorted = this.runs.reduce((sum, { rowCount }) => sum + rowCount, 0);
    if (this.tail.rowCount > Math.max(MAX_UNSORTED_ROWS, sorted)) this.compactTail();
  }

  /** Removes tiles by their ids; unknown ids are ignored. */
  remove(ids: Iterable<string>): void {
    for (const id of ids) this.drop(id);
  }

  // As of a commit

  /**
   * Applies commit `seq` of a cluster. Its changes are kept for a while, for `asOf`. If it does not follow the last commit, earlier
   * changes are dropped.
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

  /** Declares that the index is as of commit `seq`; it cannot be read as of earlier ones. */
  startAt(seq: number): void {
    this.undoLog.restart(seq);
  }

  /** The earliest commit as of which the index can be read. */
  get oldest(): number {
    return this.undoLog.oldest;
  }

  /** True if a commit follows the last one. */
  isNext(seq: number): boolean {
    return this.undoLog.isNext(seq);
  }

  /**
   * Runs `work` on the index as it was after commit `seq`, and returns its result. `work` is synchronous and changes nothing. The time
   * to undo later commits is proportional to the number of their rows. Throws TW_STORAGE_TOO_OLD.
   */
  asOf<T>(seq: number, work: () => T): T {
    const later = this.undoLog.changesAfter(seq);
    if (later.length === 0) return work();
    const { present, changed } = this;
    const { restoredById, redo } = rewind(later);
    this.restoredById = restoredById;
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
   * particular order, in turns of the event loop (`runInTurns`). Neither the visitors nor `where` change the index. Rejects with the
   * signal's reason if it aborts before the end.
   */
  async forEach(
    selection: Selection,
    visitorOf: (rows: IndexRun) => RowVisit,
    signal?: AbortSignal,
  ): Promise<void> {
    const views = this.views();
    await runInTurns(this.visit(views, selection, visitorOf), { pause: () => keepAll(views), signal });
  }

  /** The page of a query, and the number of tiles that match it. For pages of a known size, because it blocks the event loop. */
  query(query: IndexQuery): IndexPage {
    return runAtOnce(this.page(this.views(), query));
  }

  /** The same in turns, like `forEach`. */
  async queryInTurns(query: IndexQuery, signal?: AbortSignal): Promise<IndexPage> {
    const views = this.views();
    return runInTurns(this.page(views, query), { pause: () => keepAll(views), signal });
  }

  /** At most so many rows and cells are within the bounds of a selection, and so many names are in the index. */
  sizeWithin({ ranges, ids }: Pick<Selection, 'ranges' | 'ids'>): {
    rows: number;
    cells: number;
    names: number;
  } {
    const disjoint = ranges && mergeRanges(ranges);
    const size = { rows: 0, cells: 0, names: 0 };
    for (const run of this.filledRuns()) {
      const { rows, cells } = run.cells.sizeOf(disjoint);
      size.rows += rows + run.unsorted;
      size.cells += cells + run.unsorted;
      size.names += run.scenes.names.length + run.collections.names.length;
    }
    const limit = ids ? new Set(ids).size : Infinity;
    return { ...size, rows: Math.min(size.rows, limit), cells: Math.min(size.cells, limit) };
  }

  private visit(
    views: RunView[],
    selection: Selection,
    visitorOf: (rows: IndexRun) => RowVisit,
  ): Generator<void> {
    const { where } = selection;
    const runs = views.map((view) => ({ view, test: where?.(view.rows), visit: visitorOf(view.rows) }));
    return visitSelected(runs, selection, (id) => this.find(id));
  }

  private *page(views: RunView[], query: IndexQuery): Generator<void, IndexPage> {
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
    const { parts, matched } = canWalk
      ? yield* this.walk(views, query, limit + 1)
      : yield* this.scan(views, query, order, limit);
    return yield* mergePages(parts, matched, order, limit, withCursors);
  }

  /** Reads only the newest rows of each run. */
  private *walk(views: RunView[], { where, time, after, count = true }: IndexQuery, limit: number) {
    const { size } = this;
    const tests = views.map(({ rows }) => where?.(rows));
    const parts: RunMatches[] = [];
    for (const [i, view] of views.entries()) {
      const { rows } = view;
      const follows = after && rowsAfter(rows, NEWEST_FIRST, after);
      parts.push({ rows, found: yield* firstNewest(view, tests[i], time, limit, follows) });
    }
    if (!count) return { parts, matched: parts.reduce((sum, { found }) => sum + found.length, 0) };
    if (!time) return { parts, matched: size };
    let matched = 0;
    for (const view of views) matched += yield* countInTime(view, time);
    return { parts, matched };
  }

  /** Reads all selected rows, and keeps the first ones of each run. */
  private *scan(views: RunView[], query: IndexQuery, order: SortOrder, limit: number) {
    const { after } = query;
    let matched = 0;
    const heaps: { rows: IndexRun; first: TopK }[] = [];
    yield* this.visit(views, query, (rows) => {
      const follows = after && rowsAfter(rows, order, after);
      const first = new TopK(limit > 0 ? limit + 1 : 0, rowComparator(rows, order));
      heaps.push({ rows, first });
      return (row) => {
        matched++;
        if (follows === undefined || follows(row)) first.offer(row);
      };
    });
    const parts: RunMatches[] = [];
    for (const { rows, first } of heaps) parts.push({ rows, found: yield* first.rows() });
    return { parts, matched };
  }

  private find(id: string): RowRef | undefined {
    const restored = this.restoredById?.get(id);
    // A tile of a later commit may have the same id.
    if (restored && !restored.rows.removed[restored.row]) return restored;
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

  private views(): RunView[] {
    return this.filledRuns().map((rows) => new RunView(rows));
  }

  private filledRuns(): IndexRun[] {
    return this.tail.rowCount > 0 ? [...this.runs, this.tail] : this.runs;
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

  // Compaction

  /** True if the tail is long, or most rows of a run are removed. */
  get needsCompaction(): boolean {
    const runs = this.filledRuns();
    return isTailCompactionDue(runs, this.limits) || runs.some((run) => isMostlyDeleted(run, this.limits));
  }

  /** Sorts the tail synchronously. */
  compactTail(): void {
    if (this.compaction) this.finishCompaction(this.compaction);
    while (this.filledRuns().some(({ unsorted }) => unsorted > 0))
      this.finishCompaction(this.beginCompaction());
  }

  /** Merges runs as long as the index needs compaction, in steps between turns of the event loop. */
  async compact(): Promise<void> {
    while (!this.compaction && this.needsCompaction) {
      const current = this.beginCompaction();
      this.compaction = current;
      // `compactTail` may end this compaction.
      while (this.compaction === current) {
        const step = current.steps.next();
        if (step.done) this.endCompaction(current, step.value);
        await setImmediate();
      }
    }
  }

  private beginCompaction(): CompactionState {
    const runs = this.filledRuns();
    const isDue = isTailCompactionDue(runs, this.limits);
    const mostlyDeleted = runs.find((run) => isMostlyDeleted(run, this.limits));
    const sources = mostlyDeleted && !isDue ? [mostlyDeleted] : runsToCompact(runs);
    if (sources.includes(this.tail)) {
      this.runs = runs;
      this.tail = IndexRun.empty();
    }
    return { sources, steps: compactRuns(sources, this.limits.rowsPerStep) };
  }

  private finishCompaction(compaction: CompactionState): void {
    let step = compaction.steps.next();
    while (!step.done) step = compaction.steps.next();
    this.endCompaction(compaction, step.value);
  }

  private endCompaction({ sources }: CompactionState, { rows, moved }: CompactionResult): void {
    this.undoLog.move(moved);
    this.runs = this.runs.filter((run) => !sources.includes(run));
    if (rows.rowCount > 0) this.runs.push(rows);
    this.compaction = undefined;
  }
}

function keepAll(views: RunView[]): void {
  for (const view of views) view.keep();
}

function rowsAfter(rows: IndexRun, order: SortOrder, after: Cursor): (row: number) => boolean {
  const compare = cursorComparator(rows, order);
  return (row) => compare(row, after) > 0;
}
