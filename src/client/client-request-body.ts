/** Sends files and long texts as bodies of requests. `fetch` cannot: it does not wait for `100 Continue` or read an early refusal. */
import { type IncomingMessage, type OutgoingHttpHeaders, request as overHttp } from 'node:http';
import { request as overHttps } from 'node:https';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { TilewrightError } from '../errors.js';
import { FileBody } from './client-file-body.js';

/** Servers and proxies that do not support `Expect` do not answer it, so the body is sent after this time. */
const CONTINUE_TIMEOUT_MS = 2000;

/**
 * Waits for `100 Continue` before it sends the body, so that a refused body is not sent. `body` is a file, or JSON.
 * Throws TW_CLIENT_NO_FILE, and errors of the connection.
 */
export async function sendBody(
  url: string,
  method: string,
  body: FileBody | string,
  headers: OutgoingHttpHeaders,
): Promise<{ status: number; text: string; headers: Record<string, string> }> {
  const isFile = body instanceof FileBody;
  const size = isFile ? await body.bytes() : Buffer.byteLength(body);
  const send = url.startsWith('https:') ? overHttps : overHttp;
  const request = send(url, {
    method,
    signal: isFile ? body.signal : undefined,
    headers: {
      ...headers,
      'content-type': isFile ? 'application/octet-stream' : 'application/json',
      'content-length': size,
      expect: '100-continue',
    },
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject);
  });
  const timer = setTimeout(() => request.emit('continue'), CONTINUE_TIMEOUT_MS);
  let unreadable: TilewrightError | undefined;
  request.once('continue', () => {
    // An error here destroys the request, so `answered` rejects too, unless the server has answered already.
    const bytes = isFile ? body.stream() : Readable.from([Buffer.from(body)]);
    // The request itself reports only that the connection was closed.
    bytes.once('error', (error) => {
      if (error instanceof TilewrightError) unreadable = error;
    });
    // The listener above and the listeners of `request` report each error that rejects this.
    pipeline(bytes, request).catch(() => undefined);
  });
  request.flushHeaders();
  try {
    const answer = await answered.catch((error) => {
      throw unreadable ?? error;
    });
    return {
      status: answer.statusCode ?? 0,
      text: await text(answer),
      headers: answer.headers as Record<string, string>,
    };
  } finally {
    clearTimeout(timer);
    request.destroy();
  }
}
