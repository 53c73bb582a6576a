/** The order of a search: the `sort` extension of STAC APIs. */

import type { SortColumn, SortOrder } from '../../storage/index.js';
import { documented } from '../../utils/json-schema.js';
import { badSort } from '../errors.js';
import type { PropertyName } from '../filter/index.js';

interface SortKey {
  field: string;
  direction?: 'asc' | 'desc';
}

const COLUMNS: Partial<Record<PropertyName, SortColumn>> = {
  datetime: 'start',
  id: 'id',
  collection: 'collection',
  created: 'created',
  'eo:cloud_cover': 'cloud',
  pixel_coverage: 'coverage',
  platform: 'platform',
  source: 'source',
  geocode: 'geocode',
};

const names = Object.keys(COLUMNS);
const sortables = names.join(', ');

const FIELD = `(properties\\.)?(${names.join('|')})`;
const FIELD_WITH_SIGN = `[-+ ]?${FIELD}`;

/** JSON Schema of `sortby` in a URL. */
export const sortbyQuery = documented(
  { type: 'string' },
  { pattern: `^${FIELD_WITH_SIGN}(,${FIELD_WITH_SIGN})*$` },
);

/** JSON Schema of `sortby` in a body. */
export const sortbyBody = documented(
  { description: '[{"field": "properties.eo:cloud_cover", "direction": "asc"}]' },
  {
    type: 'array',
    items: {
      type: 'object',
      required: ['field'],
      properties: { field: { type: 'string', pattern: `^${FIELD}$` }, direction: { enum: ['asc', 'desc'] } },
    },
  },
);

/**
 * Parses `-datetime,+eo:cloud_cover`, or a list of fields with directions. Ties, and tiles without any keys, are ordered newest
 * first. Throws TW_QUERY_SORT.
 */
export function parseSortby(given: unknown): SortOrder {
  if (given === undefined) return [];
  const keys = typeof given === 'string' ? given.split(',').map(parseKey) : given;
  if (!Array.isArray(keys)) throw badSort(shown(given), sortables);
  const order = new Map<SortColumn, boolean>();
  for (const key of keys) {
    if (!isSortKey(key)) throw badSort(shown(key), sortables);
    const name = key.field.replace(/^properties\./, '');
    const column = Object.hasOwn(COLUMNS, name) ? COLUMNS[name as PropertyName] : undefined;
    if (column === undefined) throw badSort(key.field, sortables);
    if (!order.has(column)) order.set(column, key.direction === 'desc');
  }
  return [...order].map(([column, descending]) => ({ column, descending }));
}

function isSortKey(key: unknown): key is SortKey {
  if (typeof key !== 'object' || key === null) return false;
  const { field, direction = 'asc' } = key as Partial<SortKey>;
  return typeof field === 'string' && (direction === 'asc' || direction === 'desc');
}

const shown = (value: unknown) => JSON.stringify(value).slice(0, 60);

/** A plus sign in a URL is decoded as a space. */
function parseKey(text: string): SortKey {
  const [, sign, field] = /^([-+ ]?)(.*)$/s.exec(text) as unknown as [string, string, string];
  return { field: field.trim(), direction: sign === '-' ? 'desc' : 'asc' };
}
