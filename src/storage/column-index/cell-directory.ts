/** Finds the sorted rows of cells and of ranges of geocode keys, and among these the rows that can overlap a time range. */

import { type GridName, grids } from '../../grid/index.js';
import type { Columns } from './columns.js';

/** A time range in ms since 1970, ends included; either end may be infinite. */
export interface TimeBound {
  start: number;
  end: number;
}

/** Initial capacity. */
const INITIAL_CELLS = 1_024;

/** Cells, or ranges of cells, whose rows are found at a time. */
const CELLS_AT_ONCE = 1_024;

/** Rows in ascending order: from the first number to before the second one, from the third one to before the fourth one, and so on. */
export type RowSpans = number[];

/**
 * The cells of the first rows of some columns, which are sorted by (grid, key, precision, start).
 * Invariants: cell `i` has the rows from `first[i]` to before `first[i + 1]` or, for the last one, to before `rows`; all cells
 * differ; a tile of cell `i` lasts at most `longest[i]` ms.
 */
export class CellDirectory {
  rows = 0;
  /** Duration of the longest tile, ms. */
  longestOfAll = 0;
  /** Number of cells. */
  size = 0;
  private first: Uint32Array;
  private longest: Float64Array;

  /** `columns` may be replaced by a copy with the same rows. The directory grows beyond `capacity` by copying. */
  constructor(
    public columns: Columns,
    capacity = INITIAL_CELLS,
  ) {
    this.first = new Uint32Array(capacity);
    this.longest = new Float64Array(capacity);
  }

  /** Adds the rows from `rows` to before `to`. */
  extend(to: number): void {
    const { grid, key, precision, start, end } = this.columns;
    for (let row = this.rows; row < to; row++) {
      const before = row - 1;
      const isNew =
        row === 0 ||
        key[row] !== key[before] ||
        precision[row] !== precision[before] ||
        grid[row] !== grid[before];
      if (isNew) this.addCell(row);
      // A tile that ends before it begins: all rows of its cell have to be tested.
      const length = end[row] < start[row] ? Infinity : end[row] - start[row];
      if (length > this.longest[this.size - 1]) this.longest[this.size - 1] = length;
      if (length > this.longestOfAll) this.longestOfAll = length;
    }
    this.rows = to;
  }

  /** The rows of one cell. */
  rowsOf(grid: number, key: number, precision: number): [from: number, to: number] {
    const { columns } = this;
    let cell = this.firstAt(grid, key);
    for (; cell < this.size; cell++) {
      const row = this.first[cell];
      if (columns.grid[row] !== grid || columns.key[row] !== key) break;
      if (columns.precision[row] === precision) return [row, this.firstRow(cell + 1)];
    }
    return [0, 0];
  }

  /** Yields the rows in the ranges (all without them) that overlap the time, in ascending order: those of some cells at a time. */
  *spans(ranges: readonly CodedKeyRange[] | undefined, time: TimeBound | undefined): Generator<RowSpans> {
    let spans: RowSpans = [];
    for (const [from, to] of this.cellsIn(ranges))
      for (let cell = from; cell < to; ) {
        const end = time ? Math.min(to, cell + CELLS_AT_ONCE) : to;
        if (time) this.addInTime(cell, end, time, spans);
        else spans.push(this.firstRow(cell), this.firstRow(end));
        cell = end;
        if (cell === to && spans.length < 2 * CELLS_AT_ONCE) continue;
        yield spans;
        spans = [];
      }
    yield spans;
  }

  /** Number of sorted rows in the ranges, and of their cells. */
  sizeOf(ranges: readonly CodedKeyRange[] | undefined): { rows: number; cells: number } {
    const size = { rows: 0, cells: 0 };
    for (const [cell, end] of this.cellsIn(ranges)) {
      size.rows += this.firstRow(end) - this.firstRow(cell);
      size.cells += end - cell;
    }
    return size;
  }

  private *cellsIn(ranges: readonly CodedKeyRange[] | undefined): Generator<[from: number, to: number]> {
    if (!ranges) yield [0, this.size];
    else for (const { grid, from, to } of ranges) yield [this.firstAt(grid, from), this.firstAt(grid, to)];
  }

  /** Adds the rows of each cell that overlap the time. It skips rows that begin too late, or so early that they must have ended. */
  private addInTime(from: number, to: number, time: TimeBound, spans: RowSpans): void {
    const { first, longest } = this;
    const { start, end } = this.columns;
    // Neighbouring cells mostly have the same dates, so the offset in one cell is the first guess in the next.
    let offset = 0;
    for (let cell = from; cell < to; cell++) {
      const begin = first[cell];
      const last = this.firstRow(cell + 1);
      const since = time.start - longest[cell];
      let row = begin + offset;
      const fits =
        row <= last && (row === last || start[row] >= since) && (row === begin || start[row - 1] < since);
      if (!fits) row = this.firstSince(begin, last, since);
      offset = row - begin;
      let stop = row;
      if (longest[cell] === 0) while (stop < last && start[stop] <= time.end) stop++;
      for (; stop < last && start[stop] <= time.end; stop++) {
        if (end[stop] >= time.start) continue;
        spans.push(row, stop);
        row = stop + 1;
      }
      if (row < stop) spans.push(row, stop);
    }
  }

  /** The first row from `low` to before `high`, all of one cell, that begins at `time` or later; `high` if there is none. */
  private firstSince(low: number, high: number, time: number): number {
    const { start } = this.columns;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (start[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first cell with this key or a greater one. */
  private firstAt(grid: number, key: number): number {
    const { columns, first } = this;
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = first[middle];
      if (columns.grid[row] < grid || (columns.grid[row] === grid && columns.key[row] < key))
        low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private firstRow(cell: number): number {
    return cell < this.size ? this.first[cell] : this.rows;
  }

  private addCell(row: number): void {
    if (this.size === this.first.length) {
      const { first, longest } = this;
      this.first = new Uint32Array(2 * this.size + INITIAL_CELLS);
      this.first.set(first);
      this.longest = new Float64Array(2 * this.size + INITIAL_CELLS);
      this.longest.set(longest);
    }
    this.first[this.size++] = row;
  }
}

/** Geocode keys of one grid, from <= key < to. */
export interface CellKeyRange {
  grid: GridName;
  from: number;
  to: number;
  /** If set, only cells of this precision. Code that compares only keys may ignore it. */
  precision?: number;
}

/** The index of a grid in `grids`, which columns store. */
export const gridCodes = new Map<GridName, number>(grids.map((grid, code) => [grid.name, code]));

/** A range with the grid's code. */
export interface CodedKeyRange {
  grid: number;
  from: number;
  to: number;
}

/** The union of the ranges as disjoint, non-adjacent ranges in ascending order. */
export function mergeRanges(ranges: readonly CellKeyRange[]): CodedKeyRange[] {
  const sorted = ranges
    .map(({ grid, from, to }) => ({ grid: gridCodes.get(grid)!, from, to }))
    .sort((a, b) => a.grid - b.grid || a.from - b.from);
  const merged: CodedKeyRange[] = [];
  for (const range of sorted) {
    const last = merged.at(-1);
    if (last && last.grid === range.grid && range.from <= last.to) last.to = Math.max(last.to, range.to);
    else merged.push(range);
  }
  return merged;
}

/** True if one of the merged ranges contains a key, and all keys from it to before `end`. */
export function isWithin(
  ranges: readonly CodedKeyRange[],
  grid: number,
  key: number,
  end = key + 1,
): boolean {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const range = ranges[middle];
    if (range.grid === grid && key >= range.from && key < range.to) return end <= range.to;
    if (range.grid < grid || (range.grid === grid && key >= range.to)) low = middle + 1;
    else high = middle;
  }
  return false;
}
