/** Queries of the column index and their results. */
import type { TimeBound } from '../index-cell-directory.js';
import type { CellKeyRange } from '../index-key-range.js';
import type { IndexRun } from '../index-run.js';
import type { Cursor, SortOrder } from './index-sort-order.js';

export type RowFilter = (row: number) => boolean;

/** Creates a test of the rows of one run. The test is valid until the index changes. */
export type RunFilter = (rows: IndexRun) => RowFilter;

/** Selects tiles that meet every given condition. */
export interface Selection {
  /** Called once for each run that has rows. The test is called only for present rows that meet the other conditions. */
  where?: RunFilter;
  /** Only rows in these ranges, which may overlap. */
  ranges?: readonly CellKeyRange[];
  /** Only these tiles. */
  ids?: Iterable<string>;
  /** Only tiles whose time overlaps this, ends included. */
  time?: TimeBound;
}

export interface IndexQuery extends Selection {
  /** Newest first by default. */
  order?: SortOrder;
  /** The page begins after this cursor. */
  after?: Cursor;
  /** Maximum number of ids of a page; all if undefined. */
  limit?: number;
  /** False if `matched` is not needed, which saves time on newest-first pages with `where` and without ranges and ids. */
  count?: boolean;
  /** Set to return the cursor of each tile. */
  withCursors?: boolean;
}

export interface IndexPage {
  /** Tile ids in the order of the query. */
  ids: string[];
  /** Number of matching tiles, including those before and after this page; with `count` false it may be any smaller number. */
  matched: number;
  /** The cursor of the last id, if more tiles match after it. */
  next?: Cursor;
  /** The cursors of the ids, if the query asks for them. */
  cursors?: Cursor[];
}
