/** Checks that the collections in a filter exist: otherwise a misspelt name would silently select nothing. */
import { toArray } from '../../async/index.js';
import type { Storage } from '../../storage/index.js';
import { noSuchCollections } from '../errors.js';
import { type FilterParams, parseList } from './parse-filter-parameters.js';

/** Called for jobs on the tiles of a filter; a search just returns nothing. Throws TW_QUERY_NO_COLLECTION. */
export async function requireCollections(
  storage: Pick<Storage, 'catalogue'>,
  { collections }: FilterParams = {},
): Promise<void> {
  if (collections === undefined) return;
  const known = (await toArray(storage.catalogue.collections.values())).map(({ id }) => id);
  const absent = parseList('collections', collections).filter((id) => !known.includes(id));
  if (absent.length > 0) throw noSuchCollections(absent, known.sort());
}
