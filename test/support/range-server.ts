/** A static file server with range requests, faults and counts, as the archives of satellite data are. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import type { TestContext } from 'node:test';

export interface SeenRequest {
  method: string;
  path: string;
  range: string | undefined;
  headers: IncomingMessage['headers'];
  body: string;
  status: number;
}

/** Returns true if it has answered the request itself. */
export type Fault = (
  request: IncomingMessage,
  response: ServerResponse,
  seen: SeenRequest,
) => boolean | Promise<boolean>;

export interface RangeServer {
  url: string;
  host: string;
  requests: SeenRequest[];
  /** Asked before each request. */
  fault: Fault | undefined;
  /** Documents that are served in place of files, by path with query. */
  documents: Map<string, unknown>;
}

/** Serves the files of a folder until the test ends. The ETag of a file changes with its time and size. */
export async function rangeServer(t: Pick<TestContext, 'after'>, folder: string): Promise<RangeServer> {
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      response.destroy(error as Error);
    });
  });
  const state: RangeServer = { url: '', host: '', requests: [], fault: undefined, documents: new Map() };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { method = 'GET', url = '/', headers } = request;
    const seen = {
      method,
      path: url,
      range: headers.range,
      headers,
      body: Buffer.concat(chunks).toString(),
      status: 0,
    };
    state.requests.push(seen);
    response.on('finish', () => {
      seen.status = response.statusCode;
    });
    if (await state.fault?.(request, response, seen)) return;
    const document = state.documents.get(url);
    if (document !== undefined) {
      const value = typeof document === 'function' ? document(seen) : document;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(value));
      return;
    }
    await sendFile(join(folder, normalize(new URL(url, 'http://localhost').pathname)), request, response);
  }

  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  state.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  state.url = `http://${state.host}`;
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return state;
}

async function sendFile(
  path: string,
  { method, headers }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const info = await stat(path).catch(() => undefined);
  if (!info?.isFile()) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('no such file');
    return;
  }
  const etag = `"${info.mtimeMs}-${info.size}"`;
  response.setHeader('etag', etag);
  response.setHeader('accept-ranges', 'bytes');
  if (headers['if-match'] !== undefined && headers['if-match'] !== etag) {
    response.writeHead(412).end();
    return;
  }
  const match = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '');
  if (!match) {
    response.writeHead(200, { 'content-length': info.size });
    if (method === 'HEAD') response.end();
    else createReadStream(path).pipe(response);
    return;
  }
  const [start, end] = [Number(match[1]), Math.min(Number(match[2]), info.size - 1)];
  response.writeHead(206, {
    'content-range': `bytes ${start}-${end}/${info.size}`,
    'content-length': end - start + 1,
  });
  createReadStream(path, { start, end }).pipe(response);
}
