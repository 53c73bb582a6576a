import { messageOf } from '../errors.js';
import { unreachable } from './errors.js';

export interface Answer {
  status: number;
  /** The parsed JSON document, or null where the body is none. */
  body: unknown;
  /** By their names in small letters. */
  headers: Record<string, string>;
}

/** Carries one request to a node: over HTTP, or straight into the routes of a node in this process. */
export type Transport = (method: string, path: string, body?: unknown) => Promise<Answer>;

/** Requests over HTTP. Errors: TW_CLIENT_UNREACHABLE. */
export function httpTransport(url: string, token?: string): Transport {
  const base = url.replace(/\/+$/, '');
  return async (method, path, body) => {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (token) headers.authorization = `Bearer ${token}`;
    const response = await fetch(base + path, { method, headers, body: JSON.stringify(body) }).catch(
      (error: Error) => {
        throw unreachable.because(error, base, messageOf(error.cause ?? error));
      },
    );
    // A body that is no JSON is null; `Client` then says that this is no tilewright server.
    const answer = await response.json().catch(() => null);
    return { status: response.status, body: answer, headers: Object.fromEntries(response.headers) };
  };
}
