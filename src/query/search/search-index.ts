/** Searches over the column index: what a scan over all records would give. */
import {
  type ColumnIndex,
  type Cursor,
  compareCursors,
  type RunFilter,
  type SortOrder,
} from '../../storage/index.js';
import { compileFilter } from '../compile/compile-filter.js';
import { andTests } from '../compile/query-plan.js';
import { withTimeout } from '../compile/query-timeout.js';
import type { Filter } from '../filter/filter-tree.js';
import { decodePagingToken, encodePagingToken, searchDigest } from '../params/paging-token.js';

export interface SearchOptions {
  /** Ended by newest first: start descending, then collection, then id. */
  order?: SortOrder;
  /** The most ids; all where undefined. 0 only counts. */
  limit?: number;
  /** That of the page before. */
  token?: string;
}

export interface SearchPage {
  /** Tile ids in order. */
  ids: string[];
  /** How many tiles match in all. Exact. */
  numberMatched: number;
  /** Asks for the following page; absent on the last one. */
  next?: string;
}

/** What is searched for; plain JSON, but for a limit that is infinite. */
export interface Search {
  filter: Filter;
  order: SortOrder;
  limit: number;
  /** The page begins after this place. */
  after: Cursor | undefined;
}

/** The first places that a search finds, and how many it finds in all. */
export interface SearchHits {
  places: Cursor[];
  matched: number;
  /** Whether others follow after the last place. */
  more: boolean;
}

/** A search as a page is asked for. Throws TW_QUERY_TOKEN, TW_QUERY_TOKEN_OTHER_SEARCH. */
export function createSearch(
  filter: Filter,
  { order = [], limit = Infinity, token }: SearchOptions = {},
): Search {
  const after =
    token === undefined ? undefined : decodePagingToken(token, searchDigest(filter, order), order);
  return { filter, order, limit, after };
}

/** What one index finds, among the rows that pass `only`. Throws TW_QUERY_TOO_SLOW. */
export function searchIndex(
  index: ColumnIndex,
  { filter, order, limit, after }: Search,
  only?: RunFilter,
): SearchHits {
  const { test, ranges, ids, time, isTimeOnly } = withTimeout(compileFilter(filter));
  const where = andTests(isTimeOnly ? undefined : test, only);
  const page = index.query({ where, ranges, ids, time, order, after, limit, withCursors: true });
  return { places: page.cursors!, matched: page.matched, more: page.next !== undefined };
}

/** What one index with all tiles would find, from what several find that have each tile once. */
export function mergeHits(found: SearchHits[], { order, limit }: Search): SearchHits {
  if (found.length === 1) return found[0]!;
  const all = found.flatMap(({ places }) => places).sort((a, b) => compareCursors(a, b, order));
  return {
    places: all.slice(0, limit),
    matched: found.reduce((sum, { matched }) => sum + matched, 0),
    more: all.length > limit || found.some(({ more }) => more),
  };
}

/**
 * A page of what was found. The token names its last tile by its place in the order, so a walk gives every tile that is
 * present throughout exactly once, whatever is added or removed meanwhile.
 */
export function toSearchPage({ places, matched, more }: SearchHits, { filter, order }: Search): SearchPage {
  const page: SearchPage = { ids: places.map(({ id }) => id), numberMatched: matched };
  const last = places.at(-1);
  if (more && last) page.next = encodePagingToken(last, searchDigest(filter, order));
  return page;
}

/** One page of the tiles of an index that match a filter. Throws what `createSearch` and `searchIndex` throw. */
export function searchTiles(index: ColumnIndex, filter: Filter, options?: SearchOptions): SearchPage {
  const search = createSearch(filter, options);
  return toSearchPage(searchIndex(index, search), search);
}
