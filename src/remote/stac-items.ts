/** Finds the Items that a query selects below an address: a STAC API, a static catalog, an ItemCollection or an Item. */
import type { Bbox } from '../grid/index.js';
import { PreparedGeometry, parseDatetime } from '../query/index.js';
import type { HttpClient } from './client.js';
import { badStacDocument, filterNotSupported, remoteTooLarge, tooManyItems } from './errors.js';
import { withoutSecrets } from './hosts.js';
import {
  isObject,
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
import { collectionItems, type ItemPage, pagesFrom, type StacQuery, searchApi } from './stac-search.js';

/**
 * Returns a function that is true for Items that the query selects, without its CQL2 filter: for documents that no server has searched, and
 * for servers that ignore a condition. Throws the errors of `parseDatetime`.
 */
export function itemMatcher({
  collections,
  bbox,
  datetime,
  maxCloud,
}: StacQuery): (item: RemoteItem) => boolean {
  const region = bbox && new PreparedGeometry({ bbox });
  const span = datetime === undefined ? undefined : parseDatetime(datetime, { dates: 'periods' });
  return (item) => {
    const properties = isObject(item.document.properties) ? item.document.properties : {};
    if (collections && !collections.includes(item.collection ?? '')) return false;
    const box = bboxOf(item.document);
    if (region && box && !region.intersects(box)) return false;
    if (span && !overlaps(properties, span)) return false;
    const cloud = properties['eo:cloud_cover'];
    return maxCloud === undefined || typeof cloud !== 'number' || cloud <= maxCloud;
  };
}

/** The box of an Item that does not cross the antimeridian; undefined if it is unknown. */
function bboxOf({ bbox }: JsonObject): Bbox | undefined {
  if (!Array.isArray(bbox) || !bbox.every(Number.isFinite)) return undefined;
  const box = bbox.length === 6 ? [bbox[0], bbox[1], bbox[3], bbox[4]] : bbox;
  return box.length === 4 && box[0] <= box[2] ? (box as Bbox) : undefined;
}

function overlaps(properties: JsonObject, range: ReturnType<typeof parseDatetime>): boolean {
  const time = (name: string) => Date.parse(textOf(properties[name]) ?? '');
  const start = [time('start_datetime'), time('datetime')].find((value) => !Number.isNaN(value));
  const end = [time('end_datetime'), start].find((value) => value !== undefined && !Number.isNaN(value));
  if (start === undefined || end === undefined) return true;
  return start <= (range.end ?? Infinity) && end >= (range.start ?? -Infinity);
}

const MAX_DOCUMENTS = 20_000;
/** Documents that are requested ahead. */
const DOCUMENTS_AHEAD = 8;

/** A document without what is not needed of it, because eight are read ahead and a level can have thousands. */
type WalkedDocument = { item: RemoteItem } | { links: string[] } | undefined;

/**
 * Follows the links of a static catalog. Returns the Items below a catalog or collection, each document once. Skips collections that
 * `wants` refuses.
 */
async function* walkCatalog(
  { client, signal, onFailure }: StacReader,
  root: { document: JsonObject; url: string },
  wants: (collection: string) => boolean,
): AsyncGenerator<RemoteItem> {
  const read = async (url: string): Promise<WalkedDocument> => {
    try {
      const document = await readDocument(client, url, { signal });
      if (!document) return undefined;
      if (document.type === 'Feature') return { item: itemOf(document, url) };
      const isWanted = document.type !== 'Collection' || wants(String(document.id));
      return { links: isWanted ? linksBelow(document, url) : [] };
    } catch (error) {
      signal?.throwIfAborted();
      onFailure(withoutSecrets(url), error);
      return undefined;
    }
  };
  const seen = new Set([root.url]);
  let open = linksBelow(root.document, root.url);
  while (open.length > 0) {
    const hrefs = [...new Set(open)].filter((href) => !seen.has(href));
    for (const href of hrefs) seen.add(href);
    if (seen.size > MAX_DOCUMENTS)
      throw badStacDocument(
        withoutSecrets(root.url),
        `it has more than ${MAX_DOCUMENTS} documents; name one of its collections`,
      );
    open = [];
    for (let at = 0; at < hrefs.length; at += DOCUMENTS_AHEAD) {
      const some = hrefs.slice(at, at + DOCUMENTS_AHEAD);
      for (const found of await Promise.all(some.map(read))) {
        if (found && 'item' in found) yield found.item;
        else if (found) open = open.concat(found.links);
      }
    }
  }
}

const linksBelow = (document: JsonObject, url: string): string[] =>
  linksOf(document, url).flatMap(({ rel, href }) => (rel === 'child' || rel === 'item' ? [href] : []));

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

interface FindOptions<T> {
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
