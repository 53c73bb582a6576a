/** The orders in which a query gives its tiles, and places in them. */
import { compareText, type Rows } from '../index-run.js';

export const SORT_COLUMNS = [
  ...(['start', 'end', 'cloud', 'coverage', 'created'] as const),
  ...(['collection', 'geocode', 'platform', 'source', 'id'] as const),
] as const;

export type SortColumn = (typeof SORT_COLUMNS)[number];

/**
 * By the first column, then by the second one and so on; what is equal in all of them is in the order newest first. A tile
 * that has no value comes last, ascending and descending. Text goes by code units.
 */
export type RowOrder = readonly { column: SortColumn; descending: boolean }[];

export type SortValue = number | string | null;

/** A place in an order: the row that was there may have gone. */
export interface Position {
  /** What the tile has in the columns of the order; absent in the order newest first. */
  keys?: readonly SortValue[];
  start: number;
  collection: string;
  id: string;
}

/** Negative where the first comes before the second one. */
type Compare<B> = (a: number, b: B) => number;

const NEWEST_FIRST: RowOrder = [
  { column: 'start', descending: true },
  { column: 'collection', descending: false },
  { column: 'id', descending: false },
];

/** Whether an order is newest first, by start descending, then collection, then id. */
export function isNewestFirst(order: RowOrder): boolean {
  return order.every(
    ({ column, descending }, i) =>
      column === NEWEST_FIRST[i]?.column && descending === NEWEST_FIRST[i].descending,
  );
}

/** Compares two rows. */
export function rowComparison(rows: Rows, order: RowOrder): Compare<number> {
  const newestFirst: Compare<number> = (a, b) => rows.compareNewest(a, b);
  if (isNewestFirst(order)) return newestFirst;
  const columns = order.map(({ column, descending }) => ({
    compare: columnComparison(rows, column),
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
export function placeComparison(rows: Rows, order: RowOrder): Compare<Position> {
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
export function comparePlaces(a: Position, b: Position, order: RowOrder): number {
  const columns = isNewestFirst(order) ? [] : order;
  for (let i = 0; i < columns.length; i++) {
    const difference = compareValues(a.keys?.[i] ?? null, b.keys?.[i] ?? null, columns[i].descending);
    if (difference !== 0) return difference;
  }
  return b.start - a.start || compareText(a.collection, b.collection) || compareText(a.id, b.id);
}

/** The place of a row. */
export function positionOf(rows: Rows, order: RowOrder, row: number): Position {
  const { start, collection } = rows.columns;
  const place: Position = {
    start: start[row],
    collection: rows.collections.names[collection[row]]!,
    id: rows.idOf(row),
  };
  if (!isNewestFirst(order)) place.keys = order.map(({ column }) => sortValue(rows, column, row));
  return place;
}

/** What a tile has in a column; null where it has nothing. */
function sortValue(rows: Rows, column: SortColumn, row: number): SortValue {
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
function columnComparison(
  rows: Rows,
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
