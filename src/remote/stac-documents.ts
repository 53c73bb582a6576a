/** STAC documents of any archive, read with care: other members than those used here are not looked at. */
import { parseJson } from '../utils/json-text.js';
import type { HttpClient } from './client.js';
import { badStacDocument } from './errors.js';
import { MAX_URL_CHARS, withoutSecrets } from './hosts.js';

export type JsonObject = Record<string, unknown>;

/** Limits of one document, bytes. A page of 100 Items of Sentinel-2 has 3 MB. */
const MAX_DOCUMENT_BYTES = 20e6;

/** Headers that belong to a connection, which an archive must not set. */
const CONNECTION_HEADER =
  /^(host|connection|cookie|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade|proxy-.*)$/i;

export type Requester = Pick<HttpClient, 'request'>;

/** How the documents of a search are read. */
export interface StacReader {
  client: Requester;
  signal?: AbortSignal;
  /** Gets documents that cannot be used. */
  onFailure(url: string, error: unknown): void;
}

export interface StacLink {
  rel: string;
  href: string;
  type?: string;
  method?: string;
  body?: JsonObject;
  headers?: Record<string, string>;
  merge?: boolean;
}

/** An Item as an archive describes it. */
export interface RemoteItem {
  id: string;
  collection: string | undefined;
  /** Address of the Item, or of the document that holds it; its relative references start from here. */
  url: string;
  /** Address of the Item, if it names one. */
  self: string | undefined;
  document: JsonObject;
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

export const objectsOf = (value: unknown): JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

interface DocumentRequest {
  method?: 'GET' | 'POST';
  body?: JsonObject;
  /** Headers that a document asks for. */
  headers?: Record<string, string>;
  /** Statuses that are answered with undefined. */
  absent?: readonly number[];
  signal?: AbortSignal;
}

/** Reads a JSON document. Throws TW_STAC_BAD_DOCUMENT if it is none. */
export async function readDocument(
  client: Requester,
  url: string,
  request: DocumentRequest = {},
): Promise<JsonObject | undefined> {
  const { method = 'GET', body, headers: linkHeaders, absent = [], signal } = request;
  const { status, body: bytes } = await client.request(url, {
    method,
    headers: {
      accept: 'application/geo+json, application/json',
      ...(body && { 'content-type': 'application/json' }),
    },
    linkHeaders,
    body: body && JSON.stringify(body),
    maxBytes: MAX_DOCUMENT_BYTES,
    accept: absent,
    signal,
  });
  if (absent.includes(status)) return undefined;
  let document: unknown;
  try {
    document = parseJson(bytes.toString('utf8'));
  } catch (error) {
    throw badStacDocument.because(error, withoutSecrets(url), 'it is not JSON');
  }
  if (!isObject(document)) throw badStacDocument(withoutSecrets(url), 'it is not an object');
  return document;
}

/**
 * Returns the links of a document with absolute addresses. Those to another host have no headers and body: a host gets no request that
 * another one has composed.
 */
export function linksOf({ links }: JsonObject, url: string): StacLink[] {
  return objectsOf(links).flatMap((link) => {
    const [rel, href] = [textOf(link.rel), textOf(link.href)];
    if (rel === undefined || href === undefined || href.length > MAX_URL_CHARS || !URL.canParse(href, url))
      return [];
    const { origin } = new URL(href, url);
    const isOwn = origin === new URL(url).origin && origin !== 'null';
    const headers =
      isOwn && isObject(link.headers)
        ? Object.fromEntries(
            Object.entries(link.headers).flatMap(([name, value]) =>
              typeof value === 'string' && !CONNECTION_HEADER.test(name) ? [[name, value]] : [],
            ),
          )
        : undefined;
    return [
      {
        ...{ rel, href: new URL(href, url).href, headers },
        method: textOf(link.method)?.toUpperCase(),
        body: isOwn && isObject(link.body) ? link.body : undefined,
        merge: link.merge === true,
      },
    ];
  });
}

const MAX_ID_CHARS = 1000;
/** Relative addresses in an Item without an address lead to files that cannot be fetched. */
const NO_ADDRESS = 'file:///';

/** Returns an Item of a document. `url`: address of the document, if it has one. Throws TW_STAC_BAD_DOCUMENT if it has no id. */
export function itemOf(document: JsonObject, url = NO_ADDRESS): RemoteItem {
  const id = textOf(document.id);
  if (id === undefined || id === '') throw badStacDocument(withoutSecrets(url), 'an Item in it has no id');
  if (id.length > MAX_ID_CHARS)
    throw badStacDocument(
      withoutSecrets(url),
      `the id of an Item in it has more than ${MAX_ID_CHARS} characters`,
    );
  const self = linksOf(document, url).find(({ rel }) => rel === 'self')?.href;
  // Geometries can be large, and cells are planned by the files.
  const { geometry: _, ...kept } = document;
  const item = { id, collection: textOf(document.collection), url: self ?? url, self, document: kept };
  try {
    JSON.stringify(item);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw badStacDocument.because(error, withoutSecrets(item.url), 'its members are nested too deeply');
  }
  return item;
}

/** Returns the Items of a list of documents without those that are none. `url` as for `itemOf`. */
export function readItems(
  documents: readonly JsonObject[],
  url: string | undefined,
  onFailure: StacReader['onFailure'],
): RemoteItem[] {
  return documents.flatMap((document) => {
    try {
      return [itemOf(document, url)];
    } catch (error) {
      onFailure(withoutSecrets(url ?? ''), error);
      return [];
    }
  });
}
