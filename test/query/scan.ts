/** Searches and their orders over plain lists of records. */
import fc from 'fast-check';
import type { Filter } from '../../src/query/index.js';
import type { SortOrder, TileRecord } from '../../src/storage/index.js';
import { matches } from './oracle.js';
import { newestFirst } from './tiles.js';

/** The ids of the matching records, in an order: the expected result of a search. */
export const scan = (records: TileRecord[], filter: Filter, order: SortOrder = []) =>
  records
    .filter((record) => matches(filter, record))
    .sort((a, b) => inOrder(order, a, b))
    .map((record) => record.id);

const members: Record<SortOrder[number]['column'], keyof TileRecord> = {
  start: 'start',
  end: 'end',
  cloud: 'cloudCover',
  coverage: 'coverage',
  created: 'createdAt',
  collection: 'collection',
  geocode: 'geocode',
  platform: 'platform',
  source: 'source',
  id: 'id',
};

function inOrder(order: SortOrder, a: TileRecord, b: TileRecord): number {
  for (const { column, descending } of order) {
    const [p, q] = [a, b].map((record) => {
      const value = record[members[column]] as string | number | null;
      return column === 'cloud' || column === 'coverage'
        ? value !== null && Math.fround(Number(value))
        : value;
    });
    if (p === q) continue;
    if (p === null || p === false) return 1;
    if (q === null || q === false) return -1;
    return p! < q! === descending ? 1 : -1;
  }
  return newestFirst(a, b);
}

export const orders = fc.uniqueArray(
  fc.record({
    column: fc.constantFrom(...(Object.keys(members) as SortOrder[number]['column'][])),
    descending: fc.boolean(),
  }),
  { maxLength: 3, selector: ({ column }) => column },
);
