/** Selects Items of a file before they are sent, because a request has a limit of bytes. */
import { itemMatcher, itemOf, type StacQuery } from '../../remote/index.js';
import { missingAsset } from '../errors.js';
import { chooseAssets } from './choose-item-assets.js';

/** Returns the Items that match, with the assets of these names only; `names` as for `chooseAssets`. */
export function selectItems(
  documents: readonly Record<string, unknown>[],
  query: StacQuery,
  names: readonly string[] | undefined,
): Record<string, unknown>[] {
  const matches = itemMatcher(query);
  return documents
    .map((document) => itemOf(document))
    .filter(matches)
    .slice(0, query.limit)
    .map((item) => {
      if (!names) return item.document;
      try {
        const chosen = chooseAssets(item, { names });
        return { ...item.document, assets: Object.fromEntries(chosen.map(({ key, asset }) => [key, asset])) };
      } catch (error) {
        // The job reports it, and the other Items are ingested.
        if (missingAsset.is(error)) return item.document;
        throw error;
      }
    });
}
