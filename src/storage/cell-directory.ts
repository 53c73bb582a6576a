/** Which sorted rows are of which cell, and which of these can be of a time. */
import type { Columns } from './columns.js';
import type { CodedRange } from './key-range.js';

/** Milliseconds since 1970, ends included; either end may be infinite. */
export interface TimeBound {
  start: number;
  end: number;
}

/**
 * The cells of the first rows of some columns, which are sorted by (grid, key, precision, start).
 * Invariants: cell `i` has the rows from `first[i]` to before `first[i + 1]` or, the last one, to before `rows`; all cells
 * differ; none of the tiles of cell `i` lasts longer than `longest[i]` ms.
 */
export class CellDirectory {
  rows = 0;
  private cells = 0;
  private first = new Uint32Array(1024);
  private longest = new Float64Array(1024);

  /** `columns` may be replaced by a copy that has the same rows. */
  constructor(public columns: Columns) {}

  /** Takes in the rows that follow those it has, up to before `to`. */
  extend(to: number): void {
    const { grid, key, precision, start, end } = this.columns;
    for (let row = this.rows; row < to; row++) {
      const before = row - 1;
      const isNew =
        row === 0 ||
        key[row] !== key[before] ||
        precision[row] !== precision[before] ||
        grid[row] !== grid[before];
      if (isNew) this.begin(row);
      const length = end[row] - start[row];
      if (length > this.longest[this.cells - 1]) this.longest[this.cells - 1] = length;
    }
    this.rows = to;
  }

  /** The rows of one cell. */
  rowsOf(grid: number, key: number, precision: number): [from: number, to: number] {
    const { columns } = this;
    let cell = this.firstAt(grid, key);
    for (; cell < this.cells; cell++) {
      const row = this.first[cell];
      if (columns.grid[row] !== grid || columns.key[row] !== key) break;
      if (columns.precision[row] === precision) return [row, this.end(cell)];
    }
    return [0, 0];
  }

  /** Calls `visit` for the rows that are in a range and of the time, in their order. */
  visit(ranges: readonly CodedRange[], time: TimeBound | undefined, visit: (row: number) => void): void {
    for (const { grid, from, to } of ranges) {
      const cell = this.firstAt(grid, from);
      const end = this.firstAt(grid, to);
      if (time) this.visitTime(cell, end, time, visit);
      else this.visitRows(this.begins(cell), this.begins(end), visit);
    }
  }

  /** The same without ranges. */
  visitAll(time: TimeBound | undefined, visit: (row: number) => void): void {
    if (time) this.visitTime(0, this.cells, time, visit);
    else this.visitRows(0, this.rows, visit);
  }

  private visitRows(from: number, to: number, visit: (row: number) => void): void {
    for (let row = from; row < to; row++) visit(row);
  }

  /** In each cell only the rows that begin neither too late nor so early that they must have ended. */
  private visitTime(from: number, to: number, time: TimeBound, visit: (row: number) => void): void {
    const { start, end } = this.columns;
    for (let cell = from; cell < to; cell++) {
      const last = this.end(cell);
      for (let row = this.firstSince(cell, last, time.start - this.longest[cell]); row < last; row++) {
        if (start[row] > time.end) break;
        if (end[row] >= time.start) visit(row);
      }
    }
  }

  /** The first row of a cell that begins at a time or later. */
  private firstSince(cell: number, last: number, time: number): number {
    const { start } = this.columns;
    let low = this.first[cell];
    let high = last;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (start[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first cell of this key or a later one. */
  private firstAt(grid: number, key: number): number {
    const { columns, first } = this;
    let low = 0;
    let high = this.cells;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = first[middle];
      if (columns.grid[row] < grid || (columns.grid[row] === grid && columns.key[row] < key))
        low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private begins(cell: number): number {
    return cell < this.cells ? this.first[cell] : this.rows;
  }

  private end(cell: number): number {
    return this.begins(cell + 1);
  }

  private begin(row: number): void {
    if (this.cells === this.first.length) {
      const [first, longest] = [this.first, this.longest];
      this.first = new Uint32Array(2 * this.cells);
      this.first.set(first);
      this.longest = new Float64Array(2 * this.cells);
      this.longest.set(longest);
    }
    this.first[this.cells++] = row;
  }
}
