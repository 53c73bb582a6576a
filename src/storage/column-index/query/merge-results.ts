/** The rows that the runs of an index have found for a query, as one page. */

import type { Rows } from '../index-run.js';
import type { IndexPage } from './index-query.js';
import { comparePlaces, type Position, positionOf, type RowOrder } from './sort-order.js';

/** Rows of one run, in the order of the query. */
export interface Found {
  rows: Rows;
  found: readonly number[];
}

/** The first `limit` rows of all runs; if there are more, `next` is the place of the last one. */
export function firstPage(
  parts: readonly Found[],
  matched: number,
  order: RowOrder,
  limit: number,
  withPlaces: boolean,
): IndexPage {
  const filled = parts.filter(({ found }) => found.length > 0);
  // Ids cost less than places.
  if (filled.length === 1 && !withPlaces) return onlyIds(filled[0], matched, order, limit);
  const places = firstPlaces(filled, order, limit);
  const page: IndexPage = { ids: places.map(({ id }) => id), matched };
  if (withPlaces) page.places = places;
  if (filled.reduce((sum, { found }) => sum + found.length, 0) > limit) page.next = places.at(-1);
  return page;
}

function onlyIds({ rows, found }: Found, matched: number, order: RowOrder, limit: number): IndexPage {
  const shown = found.slice(0, limit);
  const page: IndexPage = { ids: shown.map((row) => rows.idOf(row)), matched };
  if (found.length > limit) page.next = positionOf(rows, order, shown.at(-1)!);
  return page;
}

function firstPlaces(parts: readonly Found[], order: RowOrder, limit: number): Position[] {
  const heads = parts.map(({ rows, found }) => ({
    rows,
    found,
    at: 0,
    place: positionOf(rows, order, found[0]),
  }));
  const places: Position[] = [];
  while (heads.length > 0 && places.length < limit) {
    let first = 0;
    for (let i = 1; i < heads.length; i++)
      if (comparePlaces(heads[i].place, heads[first].place, order) < 0) first = i;
    const head = heads[first];
    places.push(head.place);
    if (++head.at < head.found.length) head.place = positionOf(head.rows, order, head.found[head.at]);
    else heads.splice(first, 1);
  }
  return places;
}
