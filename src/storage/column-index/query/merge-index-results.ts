/** Merges the matching rows of several runs into one page. */
import type { IndexRun } from '../index-run.js';
import type { IndexPage } from './column-query.js';
import { type Cursor, compareCursors, cursorOf, type SortOrder } from './index-sort-order.js';

/** Rows of one run, in the order of the query. */
export interface RunMatches {
  rows: IndexRun;
  found: readonly number[];
}

/** The first `limit` rows of all runs; if there are more, `next` is the cursor of the last one. */
export function mergePages(
  parts: readonly RunMatches[],
  matched: number,
  order: SortOrder,
  limit: number,
  withCursors: boolean,
): IndexPage {
  const filled = parts.filter(({ found }) => found.length > 0);
  // Ids cost less than cursors.
  if (filled.length === 1 && !withCursors) return idsInOrder(filled[0], matched, order, limit);
  const cursors = firstCursors(filled, order, limit);
  const page: IndexPage = { ids: cursors.map(({ id }) => id), matched };
  if (withCursors) page.cursors = cursors;
  if (filled.reduce((sum, { found }) => sum + found.length, 0) > limit) page.next = cursors.at(-1);
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
    cursor: cursorOf(rows, order, found[0]),
  }));
  const cursors: Cursor[] = [];
  while (heads.length > 0 && cursors.length < limit) {
    let first = 0;
    for (let i = 1; i < heads.length; i++)
      if (compareCursors(heads[i].cursor, heads[first].cursor, order) < 0) first = i;
    const head = heads[first];
    cursors.push(head.cursor);
    if (++head.at < head.found.length) head.cursor = cursorOf(head.rows, order, head.found[head.at]);
    else heads.splice(first, 1);
  }
  return cursors;
}
