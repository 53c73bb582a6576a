import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { messageOf } from '../errors.js';
import { unreachable } from './errors.js';
import { FileBody, sendFile } from './send-file.js';

export interface Answer {
  status: number;
  /** The parsed JSON document, or null where the body is none. */
  body: unknown;
  /** By their names in small letters. */
  headers: Record<string, string>;
}

/**
 * Carries one request to a node: over HTTP, or straight into the routes of a node in this process. The body is sent as
 * JSON, a `FileBody` as it is. With `into`, the body of an answer without error becomes that file, and is null in the answer.
 */
export type Transport = (method: string, path: string, body?: unknown, into?: string) => Promise<Answer>;

/** Requests over HTTP. Errors: TW_CLIENT_UNREACHABLE. */
export function httpTransport(url: string, token?: string): Transport {
  const base = url.replace(/\/+$/, '');
  return async (method, path, body, into) => {
    const headers: Record<string, string> = {};
    if (token) headers.authorization = `Bearer ${token}`;
    const fail = (error: Error) => {
      throw unreachable.because(error, base, messageOf(error.cause ?? error));
    };
    if (body instanceof FileBody) {
      const { status, text, headers: sent } = await sendFile(base + path, method, body, headers).catch(fail);
      return { status, body: parsed(text), headers: sent };
    }
    if (body !== undefined) headers['content-type'] = 'application/json';
    const request = { method, headers, body: JSON.stringify(body) };
    const response = await fetch(base + path, request).catch(fail);
    if (into !== undefined && response.ok && response.body) {
      await pipeline(Readable.fromWeb(response.body as ReadableStream), createWriteStream(into)).catch(fail);
      return { status: response.status, body: null, headers: Object.fromEntries(response.headers) };
    }
    const answer = parsed(await response.text());
    return { status: response.status, body: answer, headers: Object.fromEntries(response.headers) };
  };
}

/** A body that is no JSON is null; `Client` then says that this is no tilewright server. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
