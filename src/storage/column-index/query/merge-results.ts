/** The rows that the runs of an index have found for a query, as one page. */

import type { IndexRun } from '../index-run.js';
import type { IndexPage } from './index-query.js';
import { type Cursor, compareCursors, cursorOf, type SortOrder } from './sort-order.js';

/** Rows of one run, in the order of the query. */
export interface RunMatches {
  rows: IndexRun;
  found: readonly number[];
}

/** The first `limit` rows of all runs; if there are more, `next` is the place of the last one. */
export function mergePages(
  parts: readonly RunMatches[],
  matched: number,
  order: SortOrder,
  limit: number,
  withPlaces: boolean,
): IndexPage {
  const filled = parts.filter(({ found }) => found.length > 0);
  // Ids cost less than places.
  if (filled.length === 1 && !withPlaces) return idsInOrder(filled[0], matched, order, limit);
  const places = firstCursors(filled, order, limit);
  const page: IndexPage = { ids: places.map(({ id }) => id), matched };
  if (withPlaces) page.cursors = places;
  if (filled.reduce((sum, { found }) => sum + found.length, 0) > limit) page.next = places.at(-1);
  return page;
}

function idsInOrder(
  { rows, found }: RunMatches,
  matched: number,
  order: SortOrder,
  limit: number,
): IndexPage {
  const shown = found.slice(0, limit);
  const page: IndexPage = { ids: shown.map((row) => rows.idOf(row)), matched };
  if (found.length > limit) page.next = cursorOf(rows, order, shown.at(-1)!);
  return page;
}

function firstCursors(parts: readonly RunMatches[], order: SortOrder, limit: number): Cursor[] {
  const heads = parts.map(({ rows, found }) => ({
    rows,
    found,
    at: 0,
    place: cursorOf(rows, order, found[0]),
  }));
  const places: Cursor[] = [];
  while (heads.length > 0 && places.length < limit) {
    let first = 0;
    for (let i = 1; i < heads.length; i++)
      if (compareCursors(heads[i].place, heads[first].place, order) < 0) first = i;
    const head = heads[first];
    places.push(head.place);
    if (++head.at < head.found.length) head.place = cursorOf(head.rows, order, head.found[head.at]);
    else heads.splice(first, 1);
  }
  return places;
}
