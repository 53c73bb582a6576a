/**
 * Paging tokens: a cursor in the order of tiles, as text that needs no escapes in a URL. A token also has a digest of its
 * search, because a cursor is not valid in another one.
 */
import { createHash } from 'node:crypto';
import type { Cursor, SortOrder, SortValue } from '../../storage/index.js';
import { badToken, tokenOfOtherSearch } from '../errors.js';
import type { Filter } from '../filter/index.js';

/** A short text that identifies a search. */
export function searchDigest(filter: Filter, order: SortOrder): string {
  return createHash('sha256')
    .update(JSON.stringify([filter, order]))
    .digest('base64url')
    .slice(0, 12);
}

export function encodePagingToken({ keys = [], start, collection, id }: Cursor, digest: string): string {
  return Buffer.from(JSON.stringify([digest, keys, start, collection, id])).toString('base64url');
}

/** Throws TW_QUERY_TOKEN, TW_QUERY_TOKEN_OTHER_SEARCH. */
export function decodePagingToken(token: string, digest: string, order: SortOrder): Cursor {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(token, 'base64url').toString());
  } catch (error) {
    throw badToken.because(error, token);
  }
  if (!Array.isArray(value)) throw badToken(token);
  const [itsDigest, keys, start, collection, id] = value as unknown[];
  if (typeof itsDigest !== 'string' || !Array.isArray(keys) || typeof start !== 'number')
    throw badToken(token);
  if (typeof collection !== 'string' || typeof id !== 'string') throw badToken(token);
  if (itsDigest !== digest) throw tokenOfOtherSearch();
  const cursor: Cursor = { start, collection, id };
  if (keys.length > 0) cursor.keys = keys as SortValue[];
  const fit = keys.length === 0 || keys.length === order.length;
  if (!fit || !keys.every((key, i) => fits(order[i]!.column, key))) throw badToken(token);
  if (encodePagingToken(cursor, digest) !== token) throw badToken(token);
  return cursor;
}

const NUMBERS = new Set(['start', 'end', 'cloud', 'coverage', 'created']);

function fits(column: string, key: unknown): boolean {
  return key === null || typeof key === (NUMBERS.has(column) ? 'number' : 'string');
}
