/** Ranges of geocode keys. */
import { type GridName, grids } from '../../grid/index.js';

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

/** True if one of the merged ranges contains a key. */
export function isWithin(ranges: readonly CodedKeyRange[], grid: number, key: number): boolean {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const range = ranges[middle];
    if (range.grid === grid && key >= range.from && key < range.to) return true;
    if (range.grid < grid || (range.grid === grid && key >= range.to)) low = middle + 1;
    else high = middle;
  }
  return false;
}
