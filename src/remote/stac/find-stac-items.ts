/** Finds the Items that a query selects below an address: a STAC API, a static catalog, an ItemCollection or an Item. */
import { badStacDocument, filterNotSupported, tooManyItems } from '../errors.js';
import { type HttpClient, withoutSecrets } from '../http/index.js';
import { itemMatcher } from './match-stac-item.js';
import { collectionItems, type ItemPage, pagesFrom, searchApi } from './search-stac-api.js';
import {
  itemOf,
  type JsonObject,
  linksOf,
  objectsOf,
  type RemoteItem,
  readDocument,
  textOf,
} from './stac-documents.js';
import type { StacQuery } from './stac-query.js';
import { walkCatalog } from './walk-stac-catalog.js';

/** Without a limit, a search with more Items is probably a mistake. */
export const MAX_ITEMS_WITHOUT_LIMIT = 1000;

/**
 * `source`: an address, or Items.
 *
 * Returns the Items, each once: of those with the same collection and id, the latest by `updated`. Reads all pages before it returns,
 * because searches of archives expire. Throws TW_STAC_..., TW_REMOTE_... and the errors of `parseDatetime`.
 */
export async function findItems(
  client: HttpClient,
  source: string | readonly JsonObject[],
  query: StacQuery,
  signal?: AbortSignal,
): Promise<RemoteItem[]> {
  const matches = itemMatcher(query);
  const { limit } = query;
  const found = new Map<string, RemoteItem>();
  for await (const { items, matched } of typeof source === 'string'
    ? pagesOf(client, source, query, signal)
    : givenItems(source)) {
    if (limit === undefined && matched !== undefined && matched > MAX_ITEMS_WITHOUT_LIMIT)
      throw tooManyItems(matched, MAX_ITEMS_WITHOUT_LIMIT);
    for (const item of items.filter(matches)) {
      const key = JSON.stringify([item.collection, item.id]);
      const other = found.get(key);
      if (!other || updatedAt(item) > updatedAt(other)) found.set(key, item);
    }
    if (limit !== undefined && found.size >= limit) break;
    if (limit === undefined && found.size > MAX_ITEMS_WITHOUT_LIMIT)
      throw tooManyItems(matched, MAX_ITEMS_WITHOUT_LIMIT);
  }
  return [...found.values()].slice(0, limit);
}

function givenItems(items: readonly JsonObject[]): ItemPage[] {
  return [{ items: items.map((item) => itemOf(item)) }];
}

async function* pagesOf(
  client: HttpClient,
  url: string,
  query: StacQuery,
  signal?: AbortSignal,
): AsyncGenerator<ItemPage> {
  const document = await readDocument(client, url, { signal });
  const hasSearch = document && linksOf(document, url).some(({ rel }) => rel === 'search');
  if (query.filter !== undefined && !(document?.type === 'Catalog' && hasSearch))
    throw filterNotSupported(withoutSecrets(url));
  if (document?.type === 'Feature') yield { items: [itemOf(document, url)] };
  else if (document?.type === 'FeatureCollection') yield* itemCollection(client, document, url, signal);
  else if (document?.type === 'Catalog' && hasSearch)
    yield* searchApi(client, { document, url }, query, signal);
  else if (document?.type === 'Collection' && linksOf(document, url).some(({ rel }) => rel === 'items'))
    yield* collectionItems(client, { document, url }, query, signal);
  else if (document?.type === 'Catalog' || document?.type === 'Collection')
    for await (const item of walkCatalog(client, { document, url }, wantsCollection(query), signal))
      yield { items: [item] };
  else
    throw badStacDocument(
      withoutSecrets(url),
      `its type is ${JSON.stringify(document?.type ?? null)}, not Feature, FeatureCollection, Catalog or Collection`,
    );
}

const wantsCollection =
  ({ collections }: StacQuery) =>
  (id: string) =>
    !collections || collections.includes(id);

async function* itemCollection(
  client: HttpClient,
  document: JsonObject,
  url: string,
  signal?: AbortSignal,
): AsyncGenerator<ItemPage> {
  yield { items: objectsOf(document.features).map((item) => itemOf(item, url)) };
  const next = linksOf(document, url).find(({ rel }) => rel === 'next');
  if (next) yield* pagesFrom(client, next, undefined, signal);
}

function updatedAt({ document: { properties } }: RemoteItem): number {
  const time = Date.parse(textOf((properties as JsonObject | undefined)?.updated) ?? '');
  return Number.isNaN(time) ? -Infinity : time;
}
