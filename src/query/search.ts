/** Searches over the column index. The result is the same as of a scan over all records. */
import {
  type ColumnIndex,
  type Cursor,
  compareCursors,
  type IndexRun,
  type RunFilter,
  type SortOrder,
} from '../storage/index.js';
import { compileFilter } from './compile.js';
import type { Filter } from './filter.js';
import { decodePagingToken, encodePagingToken, searchDigest } from './parameters.js';
import { andTests, checkWork } from './plan.js';

interface SearchOptions {
  /** Ties are ordered newest first: start descending, then collection, then id. */
  order?: SortOrder;
  /** Maximum number of ids; all if undefined. 0 only counts. */
  limit?: number;
  /** Token of the page before. */
  token?: string;
  /** False if the number of matching tiles is not needed, which saves time. */
  count?: boolean;
}

export interface SearchPage {
  /** Tile ids in order. */
  ids: string[];
  /** Exact number of all matching tiles, unless the search does not count them. */
  numberMatched: number;
  /** Token of the following page; absent on the last one. */
  next?: string;
}

/** A search. Plain JSON, except for an infinite limit. */
export interface Search {
  filter: Filter;
  order: SortOrder;
  limit: number;
  /** The page begins after this cursor. */
  after: Cursor | undefined;
  /** False if the number of matching tiles is not needed, which saves time. */
  count?: boolean;
}

/** The first tiles of a search, and the number of all. `places` is part of a message between nodes. */
export interface SearchHits {
  places: Cursor[];
  matched: number;
  /** True if more tiles follow. */
  more: boolean;
}

/** The search for one page. Throws TW_QUERY_TOKEN, TW_QUERY_TOKEN_OTHER_SEARCH. */
export function createSearch(
  filter: Filter,
  { order = [], limit = Infinity, token, count }: SearchOptions = {},
): Search {
  const after =
    token === undefined ? undefined : decodePagingToken(token, searchDigest(filter, order), order);
  return { filter, order, limit, after, ...(count === false && { count }) };
}

/**
 * Searches the rows of one index that pass `only`, as the index is at the time of the call. Throws TW_QUERY_TOO_COSTLY, and the reason of
 * the signal if it aborts before the end.
 */
export async function searchIndex(
  index: ColumnIndex,
  { filter, order, limit, after, count }: Search,
  { only, signal }: { only?: RunFilter | undefined; signal?: AbortSignal | undefined } = {},
): Promise<SearchHits> {
  const plan = compileFilter(filter);
  checkWork(plan, index);
  const { test, ranges, ids, time, isTimeOnly } = plan;
  const where = andTests(isTimeOnly ? undefined : test, only);
  const query = { where, ranges, ids, time, order, after, limit, count, withCursors: true };
  const { cursors, matched, next } = await index.queryInTurns(query, signal);
  return { places: cursors!, matched, more: next !== undefined };
}

/** Merges the hits of several indexes that have no tile in common. The result is that of one index with all tiles. */
export function mergeHits(found: SearchHits[], { order, limit }: Search): SearchHits {
  if (found.length === 1) return found[0]!;
  const all = found.flatMap(({ places: cursors }) => cursors).sort((a, b) => compareCursors(a, b, order));
  return {
    places: all.slice(0, limit),
    matched: found.reduce((sum, { matched }) => sum + matched, 0),
    more: all.length > limit || found.some(({ more }) => more),
  };
}

/**
 * A page of hits. The token has the position of its last tile in the order, so paging returns every tile that is
 * present all the time exactly once, whatever is added or removed in the meantime.
 */
export function toSearchPage(
  { places: cursors, matched, more }: SearchHits,
  { filter, order }: Search,
): SearchPage {
  const page: SearchPage = { ids: cursors.map(({ id }) => id), numberMatched: matched };
  const last = cursors.at(-1);
  if (more && last) page.next = encodePagingToken(last, searchDigest(filter, order));
  return page;
}

/** One page of the tiles of an index that match a filter. Throws the errors of `createSearch` and `searchIndex`. */
export async function searchTiles(
  index: ColumnIndex,
  filter: Filter,
  options?: SearchOptions,
): Promise<SearchPage> {
  const search = createSearch(filter, options);
  return toSearchPage(await searchIndex(index, search), search);
}

interface RunVisitor<T> {
  add(row: number): void;
  result(): T;
}

/** Visits the selected rows of an index in turns, with one visitor for each run. Returns the results of the visitors. */
export async function visitRuns<T>(
  index: ColumnIndex,
  selection: Parameters<ColumnIndex['forEach']>[0],
  visit: (rows: IndexRun) => RunVisitor<T>,
  signal?: AbortSignal,
): Promise<T[]> {
  const visitors: RunVisitor<T>[] = [];
  const visitorOf = (rows: IndexRun) => {
    const visitor = visit(rows);
    visitors.push(visitor);
    return visitor.add;
  };
  await index.forEach(selection, visitorOf, signal);
  return visitors.map(({ result }) => result());
}
