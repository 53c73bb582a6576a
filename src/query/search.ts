/** Searches over the column index: what a scan over all records would give. */
import type { ColumnIndex, RowOrder } from '../storage/index.js';
import { withDeadline } from './deadline.js';
import { compileFilter } from './filter/compile.js';
import type { Filter } from './filter/filter.js';
import { decodeToken, encodeToken, searchDigest } from './token.js';

export interface SearchOptions {
  /** Ended by newest first: start descending, then collection, then id. */
  order?: RowOrder;
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

/**
 * One page of the tiles that match a filter. The token names the last tile of the page before by its place in the order, so
 * a walk gives every tile that is present throughout exactly once, whatever is added or removed meanwhile. Throws
 * TW_QUERY_TOKEN, TW_QUERY_TOKEN_OTHER_SEARCH, TW_QUERY_TOO_SLOW.
 */
export function searchTiles(
  index: ColumnIndex,
  filter: Filter,
  { order = [], limit, token }: SearchOptions = {},
): SearchPage {
  const digest = () => searchDigest(filter, order);
  const { test, ranges, ids, time, isTime } = withDeadline(compileFilter(index, filter));
  const page = index.query({
    where: isTime ? undefined : test,
    ranges,
    ids,
    time,
    order,
    after: token === undefined ? undefined : decodeToken(token, digest(), order),
    limit,
  });
  const result: SearchPage = { ids: page.ids, numberMatched: page.matched };
  if (page.next) result.next = encodeToken(page.next, digest());
  return result;
}
