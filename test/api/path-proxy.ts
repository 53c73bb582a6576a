/** A reverse proxy that serves a server under a path. */
import { once } from 'node:events';
import { createServer, request as open } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { atEnd } from '../support/at-end.js';

/** A proxy as nginx does it: strips `prefix`, appends the client to X-Forwarded-For, sets X-Forwarded-Proto and -Host. */
export async function proxyTo(t: TestContext, target: () => string, prefix: string): Promise<string> {
  const proxy = createServer((request, response) => {
    if (!request.url!.startsWith(`${prefix}/`)) {
      response.writeHead(404).end();
      return;
    }
    const before = request.headers['x-forwarded-for'];
    const headers = {
      ...request.headers,
      'x-forwarded-for': [...(before ? [before] : []), request.socket.remoteAddress].join(', '),
      'x-forwarded-proto': 'https',
      'x-forwarded-host': request.headers.host,
      host: new URL(target()).host,
    };
    const url = target() + request.url!.slice(prefix.length);
    const sent = open(url, { method: request.method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    sent.on('error', () => response.destroy());
    request.pipe(sent);
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  atEnd(t, async () => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${prefix}`;
}
