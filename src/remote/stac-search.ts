/** Searches a STAC API (STAC API 1.0.0, Item Search) page by page. */
import { createHash } from 'node:crypto';
import type { Bbox } from '../grid/index.js';
import { parseCql2Text, parseDatetime, unsupportedCql2, writeDatetime } from '../query/index.js';
import { badStacDocument, filterNotSupported, noStacCollection } from './errors.js';
import { withoutSecrets } from './hosts.js';
import {
  isObject,
  type JsonObject,
  linksOf,
  objectsOf,
  type RemoteItem,
  readDocument,
  readItems,
  type StacLink,
  type StacReader,
} from './stac-documents.js';

/** Items of a page. Earth Search answers larger pages with 502. */
const PAGE_ITEMS = 100;
/** Far more than the limit of Items needs; a server that never ends its pages is given up. */
const MAX_PAGES = 10_000;
/** Bytes of the body that a page asks for. It repeats the search, whose filter has at most 20,000 characters, and adds a token. */
const MAX_BODY_BYTES = 1e6;
const NOT_FOUND = 404;
const METHOD_NOT_ALLOWED = [NOT_FOUND, 405];

export interface ItemPage {
  items: RemoteItem[];
  /** Number of all Items that match, if the server knows it. */
  matched?: number;
}

/** Returns the pages of a search. `root`: the landing page of the API, which has a link to the search. */
export async function* searchApi(
  reader: StacReader,
  { document, url }: { document: JsonObject; url: string },
  query: StacQuery,
): AsyncGenerator<ItemPage> {
  const links = linksOf(document, url).filter(({ rel }) => rel === 'search');
  const post = links.find(({ method }) => method === 'POST');
  const get = links.find(({ method }) => method !== 'POST');
  const conformance = Array.isArray(document.conformsTo) ? document.conformsTo.map(String) : [];
  // A server that does not know the parameter would ignore it.
  if (query.filter !== undefined && !conformance.some((uri) => uri.includes('filter')))
    throw filterNotSupported(withoutSecrets(url));
  const byGet = get && { ...get, href: withParameters(get.href, searchBody(query, conformance)) };
  const body = searchBody({ ...query, filter: jsonFilter(query.filter) }, conformance);
  const pages = post ? pagesFrom(reader, { ...post, body }, byGet) : pagesFrom(reader, byGet!);
  let found = 0;
  for await (const page of pages) {
    found += page.items.length;
    yield page;
  }
  if (found === 0) await requireCollections(reader, { document, url }, query.collections ?? []);
}

/** Throws TW_STAC_NO_COLLECTION if an API that lists its collections lacks one of these. */
async function requireCollections(
  { client, signal }: StacReader,
  { document, url }: { document: JsonObject; url: string },
  ids: readonly string[],
): Promise<void> {
  const list = linksOf(document, url).find(({ rel }) => rel === 'data')?.href;
  if (list === undefined) return;
  const isMissing = async (id: string) => {
    const address = new URL(list);
    address.pathname = `${address.pathname.replace(/\/$/, '')}/${encodeURIComponent(id)}`;
    try {
      return (await readDocument(client, address.href, { absent: [NOT_FOUND], signal })) === undefined;
    } catch {
      signal?.throwIfAborted();
      // The search was answered; a collection that cannot be read does not fail it.
      return false;
    }
  };
  const missing: string[] = [];
  for (const id of ids) if (await isMissing(id)) missing.push(id);
  if (missing.length > 0) throw noStacCollection(withoutSecrets(url), missing, withoutSecrets(list));
}

/** The filter of a POST as CQL2 JSON: stac-fastapi, which many archives use, accepts no text there. Throws TW_QUERY_CQL2_SYNTAX. */
function jsonFilter(filter: StacQuery['filter']): StacQuery['filter'] {
  if (typeof filter !== 'string') return filter;
  try {
    return parseCql2Text(filter).json as JsonObject;
  } catch (error) {
    // The archive may support more of CQL2.
    if (unsupportedCql2.is(error)) return filter;
    throw error;
  }
}

/** Returns the pages of the Items of a collection of an API (OGC API - Features). `items`: the link of the collection to them. */
export function collectionItems(
  reader: StacReader,
  items: StacLink,
  { bbox, datetime }: StacQuery,
): AsyncGenerator<ItemPage> {
  const { collections: _, ...parameters } = searchBody({ bbox, datetime }, []);
  return pagesFrom(reader, { ...items, href: withParameters(items.href, parameters) });
}

/** Returns a page and the pages that its links lead to. `fallback`: a search by GET, if the server does not answer to POST. */
export async function* pagesFrom(
  reader: StacReader,
  first: StacLink,
  fallback?: StacLink,
): AsyncGenerator<ItemPage> {
  const seen = new Set<string>();
  let link = first;
  for (let page = 0; page < MAX_PAGES; page++) {
    let document = await readPage(reader, link, page === 0 && fallback !== undefined);
    if (!document && fallback) {
      link = fallback;
      document = await readPage(reader, link, false);
    }
    if (!document || !Array.isArray(document.features))
      throw badStacDocument(withoutSecrets(link.href), 'the answer of the search has no features');
    yield {
      items: readItems(objectsOf(document.features), link.href, reader.onFailure),
      matched: matchedOf(document),
    };
    const next = linksOf(document, link.href).find(({ rel }) => rel === 'next');
    if (!next) return;
    const { method, body = {}, merge } = next;
    // Another host gets no request that this one has composed.
    if (new URL(next.href).origin !== new URL(link.href).origin) link = { rel: 'next', href: next.href };
    else
      link =
        method === 'POST'
          ? { ...next, body: merge ? { ...link.body, ...body } : body }
          : { ...next, body: undefined };
    const asked = JSON.stringify([link.href, link.body]);
    if (asked.length > MAX_BODY_BYTES)
      throw badStacDocument(
        withoutSecrets(link.href),
        `its next page asks for a request of more than ${MAX_BODY_BYTES} bytes`,
      );
    const key = createHash('sha256').update(asked).digest('base64');
    if (seen.has(key)) throw badStacDocument(withoutSecrets(link.href), 'its pages lead in a circle');
    seen.add(key);
  }
  throw badStacDocument(withoutSecrets(link.href), `it has more than ${MAX_PAGES} pages`);
}

const readPage = ({ client, signal }: StacReader, { href, body, headers }: StacLink, mayBeAbsent: boolean) =>
  readDocument(client, href, {
    method: body ? 'POST' : 'GET',
    ...{ body, headers, signal },
    absent: mayBeAbsent ? METHOD_NOT_ALLOWED : [],
  });

function matchedOf({ numberMatched, context, 'search:metadata': metadata }: JsonObject): number | undefined {
  const found = [
    numberMatched,
    isObject(context) ? context.matched : undefined,
    isObject(metadata) ? metadata.matched : undefined,
  ];
  return found.find((value) => typeof value === 'number');
}

/**
 * The parameters of the search. Cloud cover is sent as a CQL2 filter or by the Query extension, if the server conforms to one of them, and
 * else not at all: Items are compared with it when they arrive.
 */
function searchBody(
  { collections, bbox, datetime, filter, maxCloud }: StacQuery,
  conformance: string[],
): JsonObject {
  const conforms = (part: string) => conformance.some((uri) => uri.includes(part));
  const byFilter = filter !== undefined || conforms('item-search#filter') ? maxCloud : undefined;
  const isQuery = byFilter === undefined && maxCloud !== undefined && conforms('item-search#query');
  return {
    ...(collections && { collections }),
    ...(bbox && { bbox }),
    ...(datetime !== undefined && { datetime: writeDatetime(parseDatetime(datetime, { dates: 'periods' })) }),
    ...cql2Filter(filter, byFilter),
    ...(isQuery && { query: { 'eo:cloud_cover': { lte: maxCloud } } }),
    limit: PAGE_ITEMS,
  };
}

/** Properties of other archives are not known here, so the filter of the user is sent as it is. */
function cql2Filter(filter: StacQuery['filter'], maxCloud: number | undefined): JsonObject {
  if (typeof filter === 'string') {
    const text = maxCloud === undefined ? filter : `(${filter}) AND "eo:cloud_cover" <= ${maxCloud}`;
    return { filter: text, 'filter-lang': 'cql2-text' };
  }
  const cloud = maxCloud !== undefined && { op: '<=', args: [{ property: 'eo:cloud_cover' }, maxCloud] };
  if (filter === undefined && !cloud) return {};
  const both = filter !== undefined && cloud ? { op: 'and', args: [filter, cloud] } : (filter ?? cloud);
  return { filter: both, 'filter-lang': 'cql2-json' };
}

/** The parameters of a search by GET. */
function withParameters(href: string, body: JsonObject): string {
  const url = new URL(href);
  for (const [name, value] of Object.entries(body)) {
    const isList = name === 'collections' || name === 'bbox';
    url.searchParams.set(
      name,
      isList
        ? (value as unknown[]).join()
        : typeof value === 'object'
          ? JSON.stringify(value)
          : String(value),
    );
  }
  return url.href;
}

/** The conditions of a search for Items. */
export interface StacQuery {
  /** All collections if absent. */
  collections?: string[];
  /** Degrees; west > east crosses the antimeridian. */
  bbox?: Bbox;
  /** In the form of STAC APIs; days, months and years are allowed. */
  datetime?: string;
  /** CQL2 as text or JSON, for APIs only. */
  filter?: string | JsonObject;
  /** Percent. Items without the property `eo:cloud_cover` are selected. */
  maxCloud?: number;
  /** Number of Items at most, the first ones of the search. */
  limit?: number;
  /** True if a search without a limit may have many Items. */
  all?: boolean;
}
