/** Collections that a filter names must be there: a name that is written wrong would pick nothing, without a word. */

import { toArray } from '../../async/index.js';
import type { Storage } from '../../storage/index.js';
import { noSuchCollections } from '../errors.js';
import { type FilterParams, parseList } from './parse-filter.js';

/** For work on what a filter picks; a search finds nothing instead. Throws TW_QUERY_NO_COLLECTION. */
export async function requireCollections(
  storage: Pick<Storage, 'collections'>,
  { collections }: FilterParams = {},
): Promise<void> {
  if (collections === undefined) return;
  const known = (await toArray(storage.collections())).map(({ id }) => id);
  const absent = parseList('collections', collections).filter((id) => !known.includes(id));
  if (absent.length > 0) throw noSuchCollections(absent, known.sort());
}
