/** What the column index is asked, and what it answers. */
import type { TimeBound } from './cell-directory.js';
import type { KeyRange } from './key-range.js';
import type { Position, RowOrder } from './row-order.js';

/** Which tiles; every condition that is given must be fulfilled. */
export interface Selection {
  /** Whether a row matches, from `columns`; called only for rows that are present and fulfil the other conditions. */
  where?(row: number): boolean;
  /** Only rows in these ranges, which may overlap. */
  ranges?: readonly KeyRange[];
  /** Only these tiles. */
  ids?: Iterable<string>;
  /** Only tiles whose time overlaps this, ends included. */
  time?: TimeBound;
}

export interface IndexQuery extends Selection {
  /** Newest first where it is not given. */
  order?: RowOrder;
  /** The page begins after this place. */
  after?: Position;
  /** The most ids of a page; all where undefined. */
  limit?: number;
  /** False where `matched` is not needed, which saves time on newest-first pages with `where` and without ranges and ids. */
  count?: boolean;
  /** Whether the place of each tile is wanted. */
  places?: boolean;
}

export interface IndexPage {
  /** Tile ids in their order. */
  ids: string[];
  /** How many tiles match, before and after this page too; with `count` false it may be any number below. */
  matched: number;
  /** The place of the last id where more match after it. */
  next?: Position;
  /** The places of the ids, where they were asked for. */
  places?: Position[];
}
