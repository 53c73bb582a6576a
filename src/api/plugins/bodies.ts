/** Request bodies: answers `Expect: 100-continue`, aborts slow ones, drains rejected ones, and limits JSON. */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  bodyTimedOut,
  bodyTooLarge,
  encodedBody,
  jsonTooDeep,
  serverBusy,
  tooManyUploads,
} from '../errors.js';
import { ClientLimit } from './limits.js';
import { MAX_BODY_BYTES } from './problems.js';

/** A file must deliver at least MIN_BYTES_PER_WINDOW in each window, or end within it. */
const BODY_WINDOW_MS = 60_000;
const MIN_BYTES_PER_WINDOW = 64_000;
/** The window of bodies that are kept in memory. */
const JSON_WINDOW_MS = 10_000;
/** JSON bodies that are read at the same time. */
const MAX_JSON_BYTES = 64 * 2 ** 20;
const MAX_JSON_BYTES_OF_CLIENT = MAX_JSON_BYTES / 4;
/** Files that are received at the same time. */
const MAX_UPLOADS = 64;
const MAX_UPLOADS_OF_CLIENT = 16;
const RETRY_AFTER_SECONDS = 5;
/** How long the rest of a rejected body is read and discarded. A sender may read the answer only after it has sent its body. */
const DRAIN_MS = 5000;

export function registerBodyTimeout(
  server: FastifyInstance,
  { window = BODY_WINDOW_MS, least = MIN_BYTES_PER_WINDOW, jsonWindow = JSON_WINDOW_MS } = {},
): void {
  server.addHook('onRequest', async (request, reply) => {
    const { raw } = request;
    if (raw.complete !== false) return;
    const before408 = () => reply.header('connection', 'close');
    if (isJson(request)) abortWhenSlow(raw, jsonWindow, (least * jsonWindow) / window, before408);
    else abortWhenSlow(raw, window, least, before408);
  });
  const uploads = new ClientLimit(MAX_UPLOADS, MAX_UPLOADS_OF_CLIENT);
  // This comes after `onRequest`, which refuses requests because of their headers.
  server.addHook('preParsing', async (request, reply) => {
    const isUpload = request.headers['content-type'] === 'application/octet-stream';
    if (isUpload && !takeWhileArriving(uploads, 1, request, reply)) throw tooManyUploads();
    if (/^100-continue$/i.test(request.headers.expect ?? '')) reply.raw.writeContinue();
  });
  const forward = (...args: unknown[]) => server.server.emit('request', ...args);
  server.server.on('checkContinue', forward).on('checkExpectation', forward);
  server.addHook('onResponse', async ({ raw }) => {
    if (raw.complete !== false) return;
    raw.resume();
    setTimeout(() => {
      if (!raw.complete) raw.destroy();
    }, DRAIN_MS).unref();
  });
}

/** The reader of the body gets TW_API_TOO_SLOW, which becomes the answer. If nothing reads the body, the connection is closed. */
function abortWhenSlow(raw: IncomingMessage, window: number, least: number, before408: () => void): void {
  let before = raw.socket.bytesRead;
  const timer = setInterval(() => {
    const { bytesRead } = raw.socket;
    if (raw.complete) clearInterval(timer);
    else if (bytesRead - before < least) {
      clearInterval(timer);
      if (raw.listenerCount('error') === 0) raw.destroy();
      else {
        before408();
        raw.emit('error', bodyTimedOut());
      }
    }
    before = bytesRead;
  }, window).unref();
  raw.once('close', () => clearInterval(timer));
}

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

const isJson = ({ headers }: FastifyRequest) =>
  headers['content-type']?.startsWith('application/json') === true;

/** Limits the length, the nesting and the sum of JSON bodies. */
export function registerJsonBodyLimits(server: FastifyInstance): void {
  const memory = new ClientLimit(MAX_JSON_BYTES, MAX_JSON_BYTES_OF_CLIENT);
  const parse = server.getDefaultJsonParser('error', 'error');
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (request, json: string, done) => {
    if (isDeeper(json, MAX_JSON_DEPTH)) done(jsonTooDeep(MAX_JSON_DEPTH));
    else parse(request, json, done);
  });
  // This comes before the answer to `Expect: 100-continue`, so that clients do not send a body that is refused.
  server.addHook('preParsing', async (request, reply) => {
    if (!isJson(request)) return;
    const { headers, routeOptions } = request;
    const encoding = headers['content-encoding'] ?? 'identity';
    if (encoding.toLowerCase() !== 'identity') throw encodedBody(encoding);
    const limit = routeOptions.bodyLimit ?? MAX_BODY_BYTES;
    const length = Number(headers['content-length'] ?? limit);
    if (length > limit) throw bodyTooLarge(limit, 'JSON');
    if (takeWhileArriving(memory, length, request, reply)) return;
    reply.header('retry-after', RETRY_AFTER_SECONDS);
    throw serverBusy('requests');
  });
}

/** Takes an amount until the body has arrived, is refused, or its sender is gone. Returns false if the limit is reached. */
function takeWhileArriving(
  limit: ClientLimit,
  amount: number,
  { raw, ip }: FastifyRequest,
  reply: FastifyReply,
): boolean {
  if (raw.complete) return true;
  let release = limit.take(ip, amount);
  if (!release) return false;
  const free = () => {
    release?.();
    release = undefined;
  };
  raw.once('end', free).once('close', free);
  reply.raw.once('finish', free);
  return true;
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
