/** The orders in which a query gives its tiles, and places in them. */
import { compareText, type IndexRun } from '../index-run.js';

export const SORT_COLUMNS = [
  ...(['start', 'end', 'cloud', 'coverage', 'created'] as const),
  ...(['collection', 'geocode', 'platform', 'source', 'id'] as const),
] as const;

export type SortColumn = (typeof SORT_COLUMNS)[number];

/**
 * By the first column, then by the second one and so on; what is equal in all of them is in the order newest first. A tile
 * that has no value comes last, ascending and descending. Text goes by code units.
 */
export type SortOrder = readonly { column: SortColumn; descending: boolean }[];

export type SortValue = number | string | null;

/** A place in an order: the row that was there may have gone. */
export interface Cursor {
  /** What the tile has in the columns of the order; absent in the order newest first. */
  keys?: readonly SortValue[];
  start: number;
  collection: string;
  id: string;
}

/** Negative where the first comes before the second one. */
type Compare<B> = (a: number, b: B) => number;

const NEWEST_FIRST: SortOrder = [
  { column: 'start', descending: true },
  { column: 'collection', descending: false },
  { column: 'id', descending: false },
];

/** Whether an order is newest first, by start descending, then collection, then id. */
export function isNewestFirst(order: SortOrder): boolean {
  return order.every(
    ({ column, descending }, i) =>
      column === NEWEST_FIRST[i]?.column && descending === NEWEST_FIRST[i].descending,
  );
}

/** Compares two rows. */
export function rowComparator(rows: IndexRun, order: SortOrder): Compare<number> {
  const newestFirst: Compare<number> = (a, b) => rows.compareNewest(a, b);
  if (isNewestFirst(order)) return newestFirst;
  const columns = order.map(({ column, descending }) => ({
    compare: columnComparator(rows, column),
    descending,
  }));
  return (a, b) => {
    for (const { compare, descending } of columns) {
      const difference = compare(a, b, descending);
      if (difference !== 0) return difference;
    }
    return newestFirst(a, b);
  };
}

/** Compares a row with a place. */
export function cursorComparator(rows: IndexRun, order: SortOrder): Compare<Cursor> {
  const columns = isNewestFirst(order) ? [] : order;
  const { collections } = rows;
  return (row, place) => {
    for (let i = 0; i < columns.length; i++) {
      const { column, descending } = columns[i];
      const difference = compareValues(sortValue(rows, column, row), place.keys?.[i] ?? null, descending);
      if (difference !== 0) return difference;
    }
    return (
      place.start - rows.columns.start[row] ||
      compareText(collections.names[rows.columns.collection[row]]!, place.collection) ||
      compareText(rows.idOf(row), place.id)
    );
  };
}

/** Compares two places, which may be of different indexes. */
export function compareCursors(a: Cursor, b: Cursor, order: SortOrder): number {
  const columns = isNewestFirst(order) ? [] : order;
  for (let i = 0; i < columns.length; i++) {
    const difference = compareValues(a.keys?.[i] ?? null, b.keys?.[i] ?? null, columns[i].descending);
    if (difference !== 0) return difference;
  }
  return b.start - a.start || compareText(a.collection, b.collection) || compareText(a.id, b.id);
}

/** The place of a row. */
export function cursorOf(rows: IndexRun, order: SortOrder, row: number): Cursor {
  const { start, collection } = rows.columns;
  const place: Cursor = {
    start: start[row],
    collection: rows.collections.names[collection[row]]!,
    id: rows.idOf(row),
  };
  if (!isNewestFirst(order)) place.keys = order.map(({ column }) => sortValue(rows, column, row));
  return place;
}

/** What a tile has in a column; null where it has nothing. */
function sortValue(rows: IndexRun, column: SortColumn, row: number): SortValue {
  const { columns } = rows;
  switch (column) {
    case 'collection':
      return rows.collections.names[columns.collection[row]];
    case 'platform':
      return rows.platforms.names[columns.platform[row]];
    case 'source':
      return rows.sources.names[columns.source[row]];
    case 'geocode':
      return rows.geocodeOf(row);
    case 'id':
      return rows.idOf(row);
    default: {
      const value = columns[column][row];
      return Number.isNaN(value) ? null : value;
    }
  }
}

/** Like `compareValues` of the two rows' values, without making strings where codes and keys will do. */
function columnComparator(
  rows: IndexRun,
  column: SortColumn,
): (a: number, b: number, descending: boolean) => number {
  const { columns } = rows;
  const byValue = (a: number, b: number, descending: boolean) =>
    compareValues(sortValue(rows, column, a), sortValue(rows, column, b), descending);
  switch (column) {
    case 'collection':
    case 'platform':
    case 'source': {
      const codes = columns[column];
      return (a, b, descending) => (codes[a] === codes[b] ? 0 : byValue(a, b, descending));
    }
    case 'geocode': {
      const { grid, key, precision } = columns;
      return (a, b, descending) => {
        if (grid[a] !== grid[b]) return byValue(a, b, descending);
        const difference = key[a] - key[b] || precision[a] - precision[b];
        return descending ? -difference : difference;
      };
    }
    case 'id':
      return byValue;
    default: {
      const values = columns[column];
      return (a, b, descending) => {
        const difference = values[a] - values[b];
        // NaN where one of them is unknown.
        if (Number.isNaN(difference)) return byValue(a, b, descending);
        return descending ? -difference : difference;
      };
    }
  }
}

function compareValues(a: SortValue, b: SortValue, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const difference = a < b ? -1 : a > b ? 1 : 0;
  return descending ? -difference : difference;
}
