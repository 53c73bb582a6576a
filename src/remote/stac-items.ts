/** Finds the Items that a query selects below an address: a STAC API, a static catalog, an ItemCollection or an Item. */
import type { Bbox } from '../grid/index.js';
import { PreparedGeometry, parseDatetime } from '../query/index.js';
import { plural } from '../utils/text.js';
import type { HttpClient } from './client.js';
import {
  badStacDocument,
  emptyCatalog,
  filterNotSupported,
  noStacCollection,
  remoteTooLarge,
  tooManyItems,
} from './errors.js';
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
  type StacLink,
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
interface WalkedDocument {
  items: RemoteItem[];
  /** Links to the Items of collections of an API. */
  pages: StacLink[];
  /** Addresses of documents below this one, or of the next part of a list. */
  links: string[];
}

/** `wants`: true for the collections that the query selects. */
function walkedDocument(
  document: JsonObject,
  url: string,
  wants: (collection: string) => boolean,
  onFailure: StacReader['onFailure'],
): WalkedDocument {
  const links = linksOf(document, url);
  const hrefs = (...rels: string[]) => links.flatMap(({ rel, href }) => (rels.includes(rel) ? [href] : []));
  if (document.type === 'Feature') return { items: [itemOf(document, url)], pages: [], links: [] };
  if (document.type === 'FeatureCollection')
    return {
      items: readItems(objectsOf(document.features), url, onFailure),
      ...{ pages: [], links: hrefs('next') },
    };
  // The list of the collections of an API.
  if (Array.isArray(document.collections)) {
    const parts = objectsOf(document.collections).map((part) => walkedDocument(part, url, wants, onFailure));
    return {
      items: [],
      pages: parts.flatMap(({ pages }) => pages),
      links: [...parts.flatMap((part) => part.links), ...hrefs('next')],
    };
  }
  if (document.type === 'Collection' && !wants(String(document.id)))
    return { items: [], pages: [], links: [] };
  const pages = links.filter(({ rel }) => rel === 'items').slice(0, 1);
  const below = pages.length > 0 ? hrefs('child') : hrefs('child', 'item');
  return { items: [], pages, links: below.length + pages.length > 0 ? below : hrefs('data') };
}

/**
 * Follows the links of a static catalog, and of an API without a search. Returns the Items below a catalog or collection, each document
 * once. Throws TW_STAC_NO_ITEMS if the links lead to none, and TW_STAC_NO_COLLECTION if the query selects none of the collections.
 */
async function* walkCatalog(
  reader: StacReader,
  root: { document: JsonObject; url: string },
  query: StacQuery,
): AsyncGenerator<ItemPage> {
  const { client, signal, onFailure } = reader;
  let failures = 0;
  let found = 0;
  let isSearched = false;
  const collections = { selected: 0, others: 0 };
  const wants = (id: string) => {
    const isSelected = !query.collections || query.collections.includes(id);
    collections[isSelected ? 'selected' : 'others']++;
    return isSelected;
  };
  const fail = (url: string, error: unknown) => {
    failures++;
    onFailure(url, error);
  };
  const read = async (url: string): Promise<WalkedDocument | undefined> => {
    try {
      const document = await readDocument(client, url, { signal });
      return document && walkedDocument(document, url, wants, fail);
    } catch (error) {
      signal?.throwIfAborted();
      fail(withoutSecrets(url), error);
      return undefined;
    }
  };
  const seen = new Set([root.url]);
  const first = walkedDocument(root.document, root.url, wants, fail);
  let { links: open, pages: searches } = first;
  while (open.length + searches.length > 0) {
    const hrefs = [...new Set(open)].filter((href) => !seen.has(href));
    const lists = searches.filter(({ href }) => !seen.has(href));
    for (const href of [...hrefs, ...lists.map((list) => list.href)]) seen.add(href);
    if (seen.size > MAX_DOCUMENTS)
      throw badStacDocument(
        withoutSecrets(root.url),
        `it has more than ${MAX_DOCUMENTS} documents; name one of its collections`,
      );
    isSearched ||= lists.length > 0;
    for (const list of lists)
      for await (const page of collectionItems(reader, list, query)) {
        found += page.items.length;
        // The number that matches in one collection is not that of the search.
        yield { items: page.items };
      }
    open = [];
    searches = [];
    for (let at = 0; at < hrefs.length; at += DOCUMENTS_AHEAD) {
      const some = hrefs.slice(at, at + DOCUMENTS_AHEAD);
      for (const walked of await Promise.all(some.map(read))) {
        if (!walked) continue;
        found += walked.items.length;
        if (walked.items.length > 0) yield { items: walked.items };
        open = open.concat(walked.links);
        searches = searches.concat(walked.pages);
      }
    }
  }
  if (found + failures > 0 || isSearched) return;
  const url = withoutSecrets(root.url);
  if (collections.others > 0 && collections.selected === 0)
    throw noStacCollection(url, query.collections ?? [], url);
  const below = seen.size - 1;
  throw emptyCatalog(
    url,
    below === 0
      ? 'none to a child, a collection or an Item'
      : `its links lead to ${plural(below, 'document')} without Items`,
  );
}

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
  else if (document.type === 'Catalog' || document.type === 'Collection')
    yield* walkCatalog(reader, { document, url }, query);
  else
    throw badStacDocument(
      withoutSecrets(url),
      `its type is not Feature, FeatureCollection, Catalog or Collection; ${NAME_LANDING_PAGE}`,
    );
}

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
