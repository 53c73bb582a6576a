import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { messageOf, TilewrightError } from '../errors.js';
import { FileBody } from './client-file-body.js';
import { sendBody } from './client-request-body.js';
import { badAnswer, unreachable } from './errors.js';

export interface Answer {
  status: number;
  /** The parsed JSON document, or null if the body is not JSON. */
  body: unknown;
  /** By lower-case name. */
  headers: Record<string, string>;
}

/**
 * Sends a request to a node: over HTTP, or directly to the routes of a node in this process. The body is sent as JSON, a `FileBody`
 * unchanged.
 */
export interface Transport {
  (method: string, path: string, body?: unknown): Promise<Answer>;
  /** Sends GET and returns the body as a stream. */
  open(
    path: string,
    headers: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<{ status: number; body: AsyncIterable<string> }>;
  /** Sends GET and writes the body to the file `into`, unless the answer is an error. */
  download(path: string, into: string): Promise<Answer>;
}

/** Most routes refuse longer JSON, so longer bodies are sent with `Expect: 100-continue`. Characters. */
const MAX_FETCH_JSON_LENGTH = 1e6;

/** Requests over HTTP. Errors: TW_CLIENT_UNREACHABLE and TW_CLIENT_NO_FILE. */
export function httpTransport(url: string, token?: string): Transport {
  const base = url.replace(/\/+$/, '');
  const withToken = (headers: Record<string, string>) =>
    token ? { ...headers, authorization: `Bearer ${token}` } : headers;
  const fail = (error: Error) => {
    // An unreadable file is not an error of the server.
    if (error instanceof TilewrightError) throw error;
    throw unreachable.because(error, base, messageOf(error));
  };
  const ask = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const headers = withToken({});
    const content = body instanceof FileBody ? body : (JSON.stringify(body) as string | undefined);
    if (content instanceof FileBody || (content !== undefined && content.length > MAX_FETCH_JSON_LENGTH)) {
      const { text, ...answer } = await sendBody(base + path, method, content, headers).catch(fail);
      return { ...answer, body: parseJsonOrNull(text) };
    }
    if (content !== undefined) headers['content-type'] = 'application/json';
    const request = { method, headers, ...(content !== undefined && { body: content }) };
    const response = await fetch(base + path, request).catch(fail);
    const answer = parseJsonOrNull(await response.text().catch(fail));
    return { status: response.status, body: answer, headers: Object.fromEntries(response.headers) };
  };
  const open: Transport['open'] = async (path, headers, signal) => {
    const response = await fetch(base + path, { headers: withToken(headers), signal: signal ?? null }).catch(
      (error) => (signal?.aborted ? Promise.reject(error) : fail(error)),
    );
    return { status: response.status, body: decodeText(response.body ?? []) };
  };
  const download: Transport['download'] = async (path, into) => {
    const response = await fetch(base + path, { headers: withToken({}) }).catch(fail);
    const answer = { status: response.status, headers: Object.fromEntries(response.headers) };
    if (!response.ok || !response.body) return { ...answer, body: parseJsonOrNull(await response.text()) };
    await pipeline(Readable.fromWeb(response.body as ReadableStream), createWriteStream(into));
    return { ...answer, body: null };
  };
  return Object.assign(ask, { open, download });
}

/** Decodes a stream of UTF-8 bytes. */
export async function* decodeText(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const bytes of body) yield decoder.decode(bytes, { stream: true });
}

/** The server's error with its own code, or TW_CLIENT_BAD_ANSWER. */
export function errorFromResponse(
  path: string,
  { status, body }: Pick<Answer, 'status' | 'body'>,
): TilewrightError {
  const problem = body as { code?: string; detail?: string } | null;
  if (problem?.code) return new TilewrightError(problem.code, status, problem.detail ?? problem.code);
  return badAnswer(path, status);
}

/** Returns null for a body that is not JSON; `Client` then reports that the answer is not from tilewright. */
export function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
