/** Orders of the tiles of a query, and cursors in them. */
import { compareIds, compareText, type IndexRun } from './run.js';

export const SORT_COLUMNS = [
  'start',
  'end',
  'cloud',
  'coverage',
  'created',
  'collection',
  'geocode',
  'platform',
  'source',
  'id',
] as const;

export type SortColumn = (typeof SORT_COLUMNS)[number];

/**
 * By the first column, then by the second one and so on; ties are ordered newest first. A tile without a value comes last,
 * in ascending and descending order. Texts are compared by code units.
 */
export type SortOrder = readonly { column: SortColumn; descending: boolean }[];

export type SortValue = number | string | null;

/** A position in an order. Its tile may have been removed. */
export interface Cursor {
  /** The values of the tile in the columns of the order; absent in the order newest first. */
  keys?: readonly SortValue[];
  start: number;
  collection: string;
  id: string;
}

/** Negative if the first one comes before the second one. */
type Compare<B> = (a: number, b: B) => number;

const NEWEST_FIRST: SortOrder = [
  { column: 'start', descending: true },
  { column: 'collection', descending: false },
  { column: 'id', descending: false },
];

/** True if an order is newest first: by start descending, then collection, then id. */
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

/** Compares a row with a cursor. */
export function cursorComparator(rows: IndexRun, order: SortOrder): Compare<Cursor> {
  const columns = isNewestFirst(order) ? [] : order;
  const { collections } = rows;
  return (row, cursor) => {
    for (let i = 0; i < columns.length; i++) {
      const { column, descending } = columns[i];
      const difference = compareValues(sortValue(rows, column, row), cursor.keys?.[i] ?? null, descending);
      if (difference !== 0) return difference;
    }
    return (
      cursor.start - rows.columns.start[row] ||
      compareText(collections.names[rows.columns.collection[row]]!, cursor.collection) ||
      compareText(rows.idOf(row), cursor.id)
    );
  };
}

/** Compares two cursors, which may come from different indexes. */
export function compareCursors(a: Cursor, b: Cursor, order: SortOrder): number {
  const columns = isNewestFirst(order) ? [] : order;
  for (let i = 0; i < columns.length; i++) {
    const difference = compareValues(a.keys?.[i] ?? null, b.keys?.[i] ?? null, columns[i].descending);
    if (difference !== 0) return difference;
  }
  return b.start - a.start || compareText(a.collection, b.collection) || compareText(a.id, b.id);
}

/** The cursor of a row. */
export function cursorOf(rows: IndexRun, order: SortOrder, row: number): Cursor {
  const { start, collection } = rows.columns;
  const cursor: Cursor = {
    start: start[row],
    collection: rows.collections.names[collection[row]]!,
    id: rows.idOf(row),
  };
  if (!isNewestFirst(order)) cursor.keys = order.map(({ column }) => sortValue(rows, column, row));
  return cursor;
}

/** The value of a tile in a column; null if it has none. */
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

/** Compares the values of two rows like `compareValues`, but without building strings if codes or keys decide. */
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
      return (a, b, descending) => {
        if (columns.collection[a] !== columns.collection[b]) return byValue(a, b, descending);
        const difference = compareIds(rows, a, rows, b);
        return descending ? -difference : difference;
      };
    default: {
      const values = columns[column];
      return (a, b, descending) => {
        const difference = values[a] - values[b];
        // NaN if one of them is unknown.
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

/** Sorts rows of one run. Yields after at most `step` rows. */
export function* sortRows(
  rows: Uint32Array,
  compare: (a: number, b: number) => number,
  step: number,
): Generator<void, Uint32Array> {
  if (rows.length <= step) {
    const sorted = rows.toSorted(compare);
    yield;
    return sorted;
  }
  const half = rows.length >> 1;
  const list = yield* sortRows(rows.subarray(0, half), compare, step);
  const other = yield* sortRows(rows.subarray(half), compare, step);
  const all = new Uint32Array(rows.length);
  let i = 0;
  let j = 0;
  for (let at = 0; at < all.length; at++) {
    const takeOther = i === list.length || (j < other.length && compare(other[j], list[i]) < 0);
    all[at] = takeOther ? other[j++] : list[i++];
    if (at % step === 0) yield;
  }
  return all;
}
