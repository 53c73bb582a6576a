/** Lists in pages: `limit`, and `token` from the link to the next page. */
import type { FastifyRequest } from 'fastify';
import { badPagingToken } from '../errors.js';
import { requestUrl } from './base-url.js';
import { link } from './http-document-link.js';

export interface Paging {
  limit?: number;
  token?: string;
}

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 10_000;

/** Properties of a schema. A limit that is too large is not an error: it is reduced to the maximum, as STAC and OGC APIs require. */
export const paging = {
  limit: { type: 'integer', minimum: 1, default: DEFAULT_LIMIT },
  token: { type: 'string' },
};

export function parseLimit({ limit = DEFAULT_LIMIT }: Paging, most = MAX_LIMIT): number {
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
