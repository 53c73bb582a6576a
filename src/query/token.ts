/** Paging tokens: a place in the order of tiles, as text that goes into a URL as it is. */
import type { Position } from '../storage/index.js';
import { badToken } from './errors.js';

export function encodeToken({ start, collection, id }: Position): string {
  return Buffer.from(JSON.stringify([start, collection, id])).toString('base64url');
}

/** Throws TW_QUERY_TOKEN. */
export function decodeToken(token: string): Position {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(token, 'base64url').toString());
  } catch (error) {
    throw badToken.because(error, token);
  }
  if (!Array.isArray(value) || value.length !== 3) throw badToken(token);
  const [start, collection, id] = value as unknown[];
  if (typeof start !== 'number' || typeof collection !== 'string' || typeof id !== 'string')
    throw badToken(token);
  const place = { start, collection, id };
  if (encodeToken(place) !== token) throw badToken(token);
  return place;
}
