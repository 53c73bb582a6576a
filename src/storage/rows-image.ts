/** Rows as plain arrays, for a snapshot. */
import { allocate, type Columns } from './columns.js';

/** What the dictionaries hold, by code. */
export interface RowsNames {
  collections: (string | null)[];
  platforms: (string | null)[];
  sources: (string | null)[];
  scenes: (string | null)[];
}

/** All of some rows at one moment. The arrays of rows may be longer than there are rows, so that more can be added. */
export interface RowsImage {
  rows: number;
  /** So many of the rows are sorted, and `newest` has as many. */
  sorted: number;
  columns: Columns;
  removed: Uint8Array;
  newest: Uint32Array;
  texts: Uint8Array;
  names: RowsNames;
}

/** Rows with which an index begins, and the most that are kept free: there is room before all columns must be copied. */
const [LEAST_ROOM, MOST_ROOM] = [1_024, 65_536];

/** An image to be filled. */
export function emptyImage(rows: number, sorted: number, texts: number, names: RowsNames): RowsImage {
  const capacity = rows + Math.min(LEAST_ROOM + rows, MOST_ROOM);
  return {
    rows,
    sorted,
    columns: allocate(capacity),
    removed: new Uint8Array(capacity),
    newest: new Uint32Array(sorted),
    texts: new Uint8Array(texts),
    names,
  };
}
