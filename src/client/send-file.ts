/** Sends a file as the body of a request. `fetch` cannot: it does not wait for leave, nor read an early refusal. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type IncomingMessage, type OutgoingHttpHeaders, request as overHttp } from 'node:http';
import { request as overHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';

/** A body that is streamed from disk. */
export class FileBody {
  constructor(
    readonly path: string,
    readonly signal?: AbortSignal,
  ) {}
}

/** Servers and proxies that do not know `Expect` say nothing; then the file is sent all the same. */
const PATIENCE = 2000;

/** Waits for `100 Continue` before the first byte, so that a refused file is not sent in vain. */
export async function sendFile(
  url: string,
  method: string,
  { path, signal }: FileBody,
  headers: OutgoingHttpHeaders,
): Promise<{ status: number; text: string; headers: Record<string, string> }> {
  const { size } = await stat(path);
  const send = url.startsWith('https:') ? overHttps : overHttp;
  const request = send(url, {
    method,
    signal,
    headers: {
      ...headers,
      'content-type': 'application/octet-stream',
      'content-length': size,
      expect: '100-continue',
    },
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject);
  });
  const patience = setTimeout(() => request.emit('continue'), PATIENCE);
  request.once('continue', () => {
    // An error here destroys the request, so `answered` rejects too, unless the server has answered: then its answer says more.
    pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), request).catch(() => undefined);
  });
  request.flushHeaders();
  try {
    const answer = await answered;
    return {
      status: answer.statusCode ?? 0,
      text: await text(answer),
      headers: answer.headers as Record<string, string>,
    };
  } finally {
    clearTimeout(patience);
    request.destroy();
  }
}
