/** Limits the length and the nesting of JSON bodies. */
import type { FastifyInstance } from 'fastify';
import { bodyTooLarge, encodedBody, jsonTooDeep } from '../errors.js';

/**
 * Levels of objects and lists in a body. A filter may have 220 and a geometry has few; code that walks through JSON by recursion, such
 * as `JSON.stringify`, overflows the stack at several thousand.
 */
const MAX_JSON_DEPTH = 500;

/** Codes of characters. */
const Code = {
  quote: 0x22,
  backslash: 0x5c,
  openList: 0x5b,
  closeList: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const;

export function registerJsonBodyLimits(server: FastifyInstance): void {
  const parse = server.getDefaultJsonParser('error', 'error');
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (request, json: string, done) => {
    if (isDeeper(json, MAX_JSON_DEPTH)) done(jsonTooDeep(MAX_JSON_DEPTH));
    else parse(request, json, done);
  });
  // This comes before the answer to `Expect: 100-continue`, so that clients do not send a body that is refused.
  server.addHook('preParsing', async ({ headers, routeOptions }) => {
    const isJson = headers['content-type']?.startsWith('application/json');
    const encoding = headers['content-encoding'] ?? 'identity';
    if (isJson && encoding.toLowerCase() !== 'identity') throw encodedBody(encoding);
    const limit = routeOptions.bodyLimit;
    if (isJson && limit !== undefined && Number(headers['content-length']) > limit)
      throw bodyTooLarge(limit, 'JSON');
  });
}

/** Counts brackets in the text, which takes 2 to 4 ms for each megabyte. */
function isDeeper(json: string, most: number): boolean {
  for (let i = 0, level = 0; i < json.length; i++) {
    switch (json.charCodeAt(i)) {
      case Code.quote:
        i = endOfString(json, i);
        break;
      case Code.openObject:
      case Code.openList:
        if (++level > most) return true;
        break;
      case Code.closeObject:
      case Code.closeList:
        level--;
    }
  }
  return false;
}

/** Returns the position of the closing quotation mark, or the length of the text if there is none. */
function endOfString(json: string, start: number): number {
  for (let i = start + 1; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === Code.quote) return i;
    if (code === Code.backslash) i++;
  }
  return json.length;
}
