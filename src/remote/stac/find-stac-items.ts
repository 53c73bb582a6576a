/** Finds the Items that a query selects below an address: a STAC API, a static catalog, an ItemCollection or an Item. */
import { badStacDocument, filterNotSupported, remoteTooLarge, tooManyItems } from '../errors.js';
import { type HttpClient, withoutSecrets } from '../http/index.js';
import { itemMatcher } from './match-stac-item.js';
import { collectionItems, type ItemPage, pagesFrom, searchApi } from './search-stac-api.js';
import {
  itemOf,
  type JsonObject,
  linksOf,
  objectsOf,
  type RemoteItem,
  type Requester,
  readDocument,
  readItems,
  type StacReader,
  textOf,
} from './stac-documents.js';
import type { StacQuery } from './stac-query.js';
import { walkCatalog } from './walk-stac-catalog.js';

/** Without a limit, a search with more Items is probably a mistake. */
const MAX_ITEMS_WITHOUT_LIMIT = 1000;
/** Items of a search with `all`. Their results are a part of the job. */
const MAX_ITEMS = 100_000;

/** Bytes of all documents of a search. A page of 100 Items of Sentinel-2 has 3 MB. */
const MAX_SEARCH_BYTES = 5e8;
const MAX_SEARCH_BYTES_OF_ALL = 5e9;

const NOT_FOUND = 404;
const NAME_LANDING_PAGE =
  'name the address of the landing page of the catalog, not of its search, or of an Item';

export interface FindOptions<T> {
  signal?: AbortSignal;
  /** Gets documents that cannot be used; without it, they fail the search. */
  onFailure?: (url: string, error: unknown) => void;
  /** Stores an Item; by default it stays in memory. */
  keep?: (item: RemoteItem) => Promise<T>;
  /** Gets the number of Items that were left out because another one has the same collection and id. */
  onDuplicates?: (count: number) => void;
  /** Called if the limit leaves out Items. Gets their number with the others, if the server says it. */
  onLimited?: (matched: number | undefined) => void;
}

/**
 * `source`: an address, or Items.
 *
 * Returns the Items as `keep` does, each once: of those with the same collection and id, the latest by `updated`. Reads all pages before it
 * returns, because searches of archives expire. Throws TW_STAC_..., TW_REMOTE_... and the errors of `parseDatetime`.
 */
export async function findItems<T = RemoteItem>(
  client: HttpClient,
  source: string | readonly JsonObject[],
  query: StacQuery,
  { signal, onFailure = rethrow, keep = async (item) => item as T, ...on }: FindOptions<T> = {},
): Promise<T[]> {
  const matches = itemMatcher(query);
  const { limit, all = false } = query;
  const most = limit ?? (all ? MAX_ITEMS : MAX_ITEMS_WITHOUT_LIMIT);
  const maxBytes = all ? MAX_SEARCH_BYTES_OF_ALL : MAX_SEARCH_BYTES;
  let duplicates = 0;
  const found = new Map<string, { updated: number; kept: T }>();
  const pages =
    typeof source === 'string'
      ? pagesOf({ client: limitedClient(client, source, maxBytes), signal, onFailure }, source, query)
      : [{ items: readItems(source, undefined, onFailure) }];
  for await (const { items, matched } of pages as AsyncIterable<ItemPage>) {
    if (limit === undefined && matched !== undefined && matched > most)
      throw tooManyItems(matched, most, all);
    for (const item of items.filter(matches)) {
      const key = JSON.stringify([item.collection, item.id]);
      const other = found.get(key);
      const updated = updatedAt(item);
      if (other) duplicates++;
      if (!other || updated > other.updated) found.set(key, { updated, kept: await keep(item) });
    }
    if (limit !== undefined && found.size >= limit) {
      if (found.size > limit || (matched ?? 0) > limit) on.onLimited?.(matched);
      break;
    }
    if (limit === undefined && found.size > most) throw tooManyItems(undefined, most, all);
  }
  if (duplicates > 0) on.onDuplicates?.(duplicates);
  return [...found.values()].slice(0, limit).map(({ kept }) => kept);
}

function rethrow(_url: string, error: unknown): never {
  throw error;
}

/** A client that gives up after `maxBytes` of all answers. */
function limitedClient(client: HttpClient, url: string, maxBytes: number): Requester {
  let bytes = 0;
  return {
    async request(address, request) {
      const answer = await client.request(address, request);
      bytes += answer.body.length;
      if (bytes > maxBytes) throw remoteTooLarge(withoutSecrets(url), maxBytes);
      return answer;
    },
  };
}

async function* pagesOf(reader: StacReader, url: string, query: StacQuery): AsyncGenerator<ItemPage> {
  const { client, signal } = reader;
  const document = await readDocument(client, url, { signal, absent: [NOT_FOUND] });
  if (!document) throw badStacDocument(withoutSecrets(url), `the host answered 404; ${NAME_LANDING_PAGE}`);
  const hasSearch = linksOf(document, url).some(({ rel }) => rel === 'search');
  if (query.filter !== undefined && !(document.type === 'Catalog' && hasSearch))
    throw filterNotSupported(withoutSecrets(url));
  if (document.type === 'Feature') yield { items: [itemOf(document, url)] };
  else if (document.type === 'FeatureCollection') yield* itemCollection(reader, document, url);
  else if (document.type === 'Catalog' && hasSearch) yield* searchApi(reader, { document, url }, query);
  else if (document.type === 'Collection' && linksOf(document, url).some(({ rel }) => rel === 'items'))
    yield* collectionItems(reader, { document, url }, query);
  else if (document.type === 'Catalog' || document.type === 'Collection')
    for await (const item of walkCatalog(reader, { document, url }, wantsCollection(query)))
      yield { items: [item] };
  else
    throw badStacDocument(
      withoutSecrets(url),
      `its type is not Feature, FeatureCollection, Catalog or Collection; ${NAME_LANDING_PAGE}`,
    );
}

const wantsCollection =
  ({ collections }: StacQuery) =>
  (id: string) =>
    !collections || collections.includes(id);

async function* itemCollection(
  reader: StacReader,
  document: JsonObject,
  url: string,
): AsyncGenerator<ItemPage> {
  yield { items: readItems(objectsOf(document.features), url, reader.onFailure) };
  const next = linksOf(document, url).find(({ rel }) => rel === 'next');
  if (next) yield* pagesFrom(reader, next);
}

function updatedAt({ document: { properties } }: RemoteItem): number {
  const time = Date.parse(textOf((properties as JsonObject | undefined)?.updated) ?? '');
  return Number.isNaN(time) ? -Infinity : time;
}
