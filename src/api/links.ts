/** Addresses and links in documents: the base URL, the requested address, and the pages of lists. */
import type { FastifyRequest } from 'fastify';
import { badPagingToken, badRequest } from './errors.js';

declare module 'fastify' {
  interface FastifyInstance {
    /** Base of all links, without a trailing slash. If undefined, links use the host of the request. */
    publicUrl: string | undefined;
  }
}

/**
 * The address by which the client reached the server, without a trailing slash. Links in answers start with it. It is the public URL
 * of the server, if it has one. Otherwise it comes from the header Host, or from `X-Forwarded-*` of a trusted proxy.
 */
export function baseUrl(request: FastifyRequest): string {
  if (request.forwardedBaseUrl !== undefined) return request.forwardedBaseUrl;
  const { publicUrl } = request.server;
  if (publicUrl !== undefined) return publicUrl;
  const { host } = request;
  const protocol = request.protocol.toLowerCase();
  const base = `${protocol}://${host}`;
  if (!/^[\w.-]+(:\d+)?$|^\[[\da-f:.]+\](:\d+)?$/i.test(host) || !URL.canParse(base))
    throw badRequest(`the header Host is not a valid host: ${host}`);
  if (protocol !== 'http' && protocol !== 'https')
    throw badRequest(`the header X-Forwarded-Proto is neither http nor https: ${protocol}`);
  return base;
}

/** Path and query of the request. Removes the host of an absolute request target, because only the header Host was checked. */
export function requestPath(request: FastifyRequest): string {
  const path = request.url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, '');
  return path.startsWith('/') ? path : `/${path}`;
}

/**
 * Target of the redirect of a page that was requested with a trailing slash, relative to the path of the request: relative links of the
 * page need the path without a slash. Undefined for a path without a trailing slash.
 */
export function withoutTrailingSlash(request: FastifyRequest): string | undefined {
  const [, path, query = ''] = /^(\/[\w-]+)\/+(\?.*)?$/.exec(requestPath(request)) ?? [];
  return path === undefined ? undefined : `..${path}${query}`;
}

/** The requested address, as clients see it. */
export function requestUrl(request: FastifyRequest): URL {
  return new URL(baseUrl(request) + requestPath(request));
}

/** A link of a document, by default to JSON. */
export const link = (rel: string, href: string, type = 'application/json') => ({ rel, type, href });

/** Lists in pages: `limit`, and `token` from the link to the next page. */
export interface Paging {
  limit?: number;
  token?: string;
}

const DEFAULT_PAGE_LIMIT = 10;
const MAX_PAGE_LIMIT = 10_000;

/** Properties of a schema. A limit that is too large is not an error: it is reduced to the maximum, as STAC and OGC APIs require. */
export const paging = {
  limit: { type: 'integer', minimum: 1, default: DEFAULT_PAGE_LIMIT },
  token: { type: 'string' },
};

export function parseLimit({ limit = DEFAULT_PAGE_LIMIT }: Paging, most = MAX_PAGE_LIMIT): number {
  return Math.min(limit, most);
}

/** The address of the page of the requested list that begins at `token`. */
export function nextPageUrl(request: FastifyRequest, token: string): string {
  const url = requestUrl(request);
  url.searchParams.set('token', token);
  return url.href;
}

/** Links of a page of a list whose tokens are the ids of its elements. */
export function pageLinks(request: FastifyRequest, page: { id: string }[], hasNext: boolean) {
  const next = hasNext ? [link('next', nextPageUrl(request, page.at(-1)!.id))] : [];
  return [link('self', requestUrl(request).href), ...next];
}

/** Properties of the schema of a short list, which is complete without a limit. */
export const listPaging = {
  limit: { type: 'integer', minimum: 1 },
  token: { type: 'string', maxLength: 200 },
};

/** A page of a list in memory. The token is the id of the last element of the previous page. Throws TW_API_TOKEN. */
export function toPage<T extends { id: string }>(
  request: FastifyRequest,
  list: T[],
  { limit = list.length, token }: Paging,
): { page: T[]; links: object[] } {
  const start = token === undefined ? 0 : list.findIndex(({ id }) => id === token) + 1;
  if (token !== undefined && start === 0) throw badPagingToken(token);
  const page = list.slice(start, start + limit);
  return { page, links: pageLinks(request, page, start + limit < list.length) };
}
