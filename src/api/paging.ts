/** Lists in pages: `limit`, and `token` from the link to the next page. */
import type { FastifyRequest } from 'fastify';
import { requestUrl } from './base-url.js';

export interface Paging {
  limit?: number;
  token?: string;
}

const DEFAULT_LIMIT = 10;
/** More are clamped, as the STAC API asks. */
const MAX_LIMIT = 10_000;

/** Properties of a schema. */
export const paging = {
  limit: { type: 'integer', minimum: 1, default: DEFAULT_LIMIT },
  token: { type: 'string' },
};

export function limitOf({ limit = DEFAULT_LIMIT }: Paging): number {
  return Math.min(limit, MAX_LIMIT);
}

/** The address of the page that `token` begins, of the list that was asked for. */
export function nextPage(request: FastifyRequest, token: string): string {
  const url = requestUrl(request);
  url.searchParams.set('token', token);
  return url.href;
}
