/** The columns of all tiles that searches read, in memory. */
import { grids } from '../geocode/index.js';
import { allocate, type Columns, columnNames, Dictionary, resize } from './columns.js';
import { type CodedRange, gridCode, isWithin, type KeyRange, mergeRanges } from './key-range.js';
import { NewestRows } from './newest-rows.js';
import type { TileRecord } from './records.js';

/** A place in the order newest first: by start descending, then collection, then id. */
export interface Position {
  start: number;
  collection: string;
  id: string;
}

export interface IndexQuery {
  /** Whether a row matches, from `columns`; called only for rows that are present. */
  where(row: number): boolean;
  /** Only rows in these ranges, which may overlap. All rows where undefined. */
  ranges?: readonly KeyRange[];
  /** Only these tiles. */
  ids?: Iterable<string>;
  /** The page begins after this place. */
  after?: Position;
  /** The most ids of a page; all where undefined. */
  limit?: number;
}

export interface IndexPage {
  /** Tile ids, newest first. */
  ids: string[];
  /** How many tiles match, before and after this page too. */
  matched: number;
  /** The place of the last id where more match after it. */
  next?: Position;
}

/** The tail is merged when it is longer than an eighth of the sorted rows, within these limits. */
const SHORTEST_TAIL = 4_096;
const LONGEST_TAIL = 65_536;

/**
 * All tiles as columns. Rows are in the order in which they were added and keep their place, so a tile that changes gets
 * a new row and its old one is marked as removed.
 *
 * Invariants: `rowOf` maps the id of every present tile to its one row with precision > 0, and `ids[row]` is that id.
 * `order` holds each of the rows 0 to order.length - 1 once, sorted by (grid, key, start); the rows from there to `used`
 * are the tail, in which ranges are searched row by row. Nothing here waits: a query sees one state of the index.
 */
export class ColumnIndex {
  columns: Columns = allocate(SHORTEST_TAIL);
  readonly collections = new Dictionary(2 ** 16);
  readonly platforms = new Dictionary(2 ** 16);
  readonly sources = new Dictionary(2 ** 8);
  private ids: string[] = [];
  private rowOf = new Map<string, number>();
  private order = new Uint32Array(0);
  private used = 0;

  /** Number of tiles. */
  get size(): number {
    return this.rowOf.size;
  }

  /** Replaces everything. */
  load(records: Iterable<TileRecord>): void {
    this.columns = allocate(SHORTEST_TAIL);
    this.ids = [];
    this.rowOf = new Map();
    this.order = new Uint32Array(0);
    this.used = 0;
    for (const record of records) this.append(record);
    this.mergeTail();
  }

  /** Adds tiles; a tile of a known id takes the place of the former one. */
  add(records: Iterable<TileRecord>): void {
    for (const record of records) this.append(record);
    this.tidy();
  }

  /** Removes tiles by their ids; unknown ids are passed over. */
  remove(ids: Iterable<string>): void {
    for (const id of ids) this.drop(id);
    this.tidy();
  }

  /** The page of a query, and how many tiles match it in all. */
  query({ where, ranges, ids, after, limit = Infinity }: IndexQuery): IndexPage {
    const { precision } = this.columns;
    const page = new NewestRows(limit, this.columns.start, (a, b) => this.compare(a, this.position(b)));
    let matched = 0;
    let following = 0;
    const visit = (row: number) => {
      if (precision[row] === 0 || !where(row)) return;
      matched++;
      if (after && this.compare(row, after) <= 0) return;
      following++;
      page.offer(row);
    };
    if (ids) this.visitIds(ids, visit);
    else if (ranges) this.visitRanges(ranges, visit);
    else for (let row = 0; row < this.used; row++) visit(row);

    const rows = page.rows();
    const result: IndexPage = { ids: rows.map((row) => this.ids[row]), matched };
    if (following > rows.length && rows.length > 0) result.next = this.position(rows.at(-1)!);
    return result;
  }

  private visitIds(ids: Iterable<string>, visit: (row: number) => void): void {
    for (const id of new Set(ids)) {
      const row = this.rowOf.get(id);
      if (row !== undefined) visit(row);
    }
  }

  private visitRanges(ranges: readonly KeyRange[], visit: (row: number) => void): void {
    const { grid, key } = this.columns;
    const disjoint = mergeRanges(ranges);
    for (const range of disjoint) {
      for (let i = this.firstAt(range); i < this.order.length; i++) {
        const row = this.order[i];
        if (grid[row] !== range.grid || key[row] >= range.to) break;
        visit(row);
      }
    }
    for (let row = this.order.length; row < this.used; row++) {
      if (isWithin(disjoint, grid[row], key[row])) visit(row);
    }
  }

  /** Where a range begins in `order`. */
  private firstAt(range: CodedRange): number {
    const { grid, key } = this.columns;
    let low = 0;
    let high = this.order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = this.order[middle];
      if (grid[row] < range.grid || (grid[row] === range.grid && key[row] < range.from)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private position(row: number): Position {
    return {
      start: this.columns.start[row],
      collection: this.collections.names[this.columns.collection[row]]!,
      id: this.ids[row],
    };
  }

  /** Negative where a row comes before a place in the order newest first. */
  private compare(row: number, place: Position): number {
    const { start, collection } = this.columns;
    return (
      place.start - start[row] ||
      compareText(this.collections.names[collection[row]]!, place.collection) ||
      compareText(this.ids[row], place.id)
    );
  }

  private append(record: TileRecord): void {
    const grid = gridCode.get(record.grid)!;
    const { key } = grids[grid].key(record.geocode);
    this.drop(record.id);
    if (this.used === this.columns.key.length) this.columns = resize(this.columns, this.used * 2);
    const row = this.used++;
    const columns = this.columns;
    columns.grid[row] = grid;
    columns.key[row] = key;
    columns.precision[row] = record.geocode.length;
    columns.start[row] = record.start;
    columns.end[row] = record.end;
    columns.cloud[row] = record.cloudCover ?? NaN;
    columns.coverage[row] = record.coverage;
    columns.collection[row] = this.collections.add(record.collection);
    columns.platform[row] = this.platforms.add(record.platform);
    columns.source[row] = this.sources.add(record.source);
    this.ids[row] = record.id;
    this.rowOf.set(record.id, row);
  }

  private drop(id: string): void {
    const row = this.rowOf.get(id);
    if (row === undefined) return;
    this.columns.precision[row] = 0;
    this.rowOf.delete(id);
  }

  /** Keeps removed rows fewer than present ones, and the tail short. */
  private tidy(): void {
    if (this.used > 2 * this.size + SHORTEST_TAIL) this.compact();
    const tailLimit = Math.min(Math.max(this.order.length / 8, SHORTEST_TAIL), LONGEST_TAIL);
    if (this.used - this.order.length > tailLimit) this.mergeTail();
  }

  private mergeTail(): void {
    const { grid, key, start } = this.columns;
    const compare = (a: number, b: number) => grid[a] - grid[b] || key[a] - key[b] || start[a] - start[b];
    const sorted = this.order;
    const tail = Uint32Array.from({ length: this.used - sorted.length }, (_, i) => sorted.length + i).sort(
      compare,
    );
    const merged = new Uint32Array(this.used);
    for (let i = 0, j = 0; i + j < merged.length; ) {
      const takeSorted = j === tail.length || (i < sorted.length && compare(sorted[i], tail[j]) <= 0);
      merged[i + j] = takeSorted ? sorted[i] : tail[j];
      if (takeSorted) i++;
      else j++;
    }
    this.order = merged;
  }

  /** Moves the present rows together. Their sequence stays, so `order` stays sorted, and the tail stays the tail. */
  private compact(): void {
    const old = this.columns;
    const columns = allocate(Math.max(this.size, SHORTEST_TAIL));
    const ids: string[] = [];
    const moved = new Uint32Array(this.used);
    for (let row = 0; row < this.used; row++) {
      if (old.precision[row] === 0) continue;
      const target = ids.length;
      moved[row] = target;
      for (const name of columnNames) columns[name][target] = old[name][row];
      ids.push(this.ids[row]);
      this.rowOf.set(this.ids[row], target);
    }
    this.order = this.order.filter((row) => old.precision[row] !== 0).map((row) => moved[row]);
    this.columns = columns;
    this.ids = ids;
    this.used = ids.length;
  }
}

/** By code units: the same everywhere, whatever the locale. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
