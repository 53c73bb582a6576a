/** Hosts whose answers never end, are too large, or lead a request elsewhere. */
import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { StoredItems } from '../../src/ingest/items.js';
import { findItems, HttpClient, RemoteFile, type RemoteItem } from '../../src/remote/index.js';
import { rangeServer } from '../support/range-server.js';
import { tempFolder } from '../support/temp.js';

const CODE = (code: string) => (error: { code: string }) => error.code === code;

/** A server that answers each request as the function says. */
async function rawServer(t: TestContext, answer: (socket: Socket, path: string) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => answer(socket, data.toString().split(' ')[1]!));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  return { host, url: `http://${host}`, sockets };
}

/** Writes chunks of a body for ever. */
function writeForEver(socket: Socket): void {
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  more();
}

test('the body of a redirect, an error or a part that was not requested is not read beyond a limit', async (t) => {
  const { host, url, sockets } = await rawServer(t, (socket, path) => {
    if (path === '/file') {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      return;
    }
    const statuses: Record<string, string> = {
      '/moved': '302 Found\r\nLocation: /file',
      '/part': '206 Partial Content',
    };
    const status = statuses[path] ?? '404 Not Found';
    socket.write(`HTTP/1.1 ${status}\r\nTransfer-Encoding: chunked\r\n\r\n`);
    writeForEver(socket);
  });
  const client = new HttpClient({ hosts: [host], anyPublic: false });
  t.after(() => client.close());
  const { body } = await client.request(`${url}/moved`, { maxBytes: 8e9 });
  assert.equal(body.toString(), 'ok');
  for (const path of ['missing', 'part'])
    await assert.rejects(client.request(`${url}/${path}`, { maxBytes: 8e9 }), CODE('TW_REMOTE_REFUSED'));
  const written = sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
  assert.ok(written < 50e6, `${written} bytes`);
});

const TRICKLES = {
  'interim answers': ['', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
  'a header': ['HTTP/1.1 200 OK\r\nx-a: ', 'y'],
  'an extension of a chunk': ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=', 'y'],
  'a trailer': ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-t: ', 'y'],
};

for (const [what, [start, more]] of Object.entries(TRICKLES))
  test(`a host that sends ${what} for ever does not hold a request`, async (t) => {
    const stop = new AbortController();
    const { host, url, sockets } = await rawServer(t, (socket) => {
      // The request is repeated, so the first one was given up.
      if (sockets.length === 2) stop.abort(new Error('repeated'));
      socket.write(start!);
      const timer = setInterval(() => socket.write(more!), 20);
      socket.on('close', () => clearInterval(timer));
    });
    const times = { head: 200, rate: 200 };
    const client = new HttpClient({ hosts: [host], anyPublic: false }, undefined, times);
    t.after(() => client.close());
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(20_000)]);
    await assert.rejects(client.request(url, { maxBytes: 1000, signal }), /repeated/);
  });

test('a host cannot compose a request to another one', async (t) => {
  const [evil, other] = [
    await rangeServer(t, await tempFolder(t)),
    await rangeServer(t, await tempFolder(t)),
  ];
  const api = `${evil.url}/stac`;
  const composed = { method: 'POST', headers: { 'x-admin': '1' }, body: { all: true } };
  const client = new HttpClient({ hosts: [evil.host, other.host], anyPublic: false });
  t.after(() => client.close());
  other.documents.set('/search', { type: 'FeatureCollection', features: [] });
  const seen = () => other.requests.splice(0).map(({ method, headers }) => [method, headers['x-admin']]);

  // The search of a catalog is on another host.
  evil.documents.set('/stac', {
    type: 'Catalog',
    links: [{ rel: 'search', href: `${other.url}/search`, ...composed }],
  });
  await findItems(client, api, {});
  assert.deepEqual(seen(), [['POST', undefined]]);

  // The first page of an ItemCollection leads to another host.
  evil.documents.set('/page', {
    type: 'FeatureCollection',
    features: [],
    links: [{ rel: 'next', href: `${other.url}/search`, ...composed }],
  });
  await findItems(client, `${evil.url}/page`, {});
  assert.deepEqual(seen(), [['GET', undefined]]);

  // A page of the same host redirects to another one.
  evil.fault = (request, response) => {
    if (request.url !== '/moved') return false;
    response.writeHead(307, { location: `${other.url}/search` }).end();
    return true;
  };
  const next = (link: object) =>
    evil.documents.set('/page', {
      type: 'FeatureCollection',
      features: [],
      links: [{ rel: 'next', href: '/moved', ...link }],
    });
  next(composed);
  await assert.rejects(findItems(client, `${evil.url}/page`, {}), CODE('TW_REMOTE_BAD_URL'));
  assert.deepEqual(seen(), []);
  next({ headers: composed.headers });
  await findItems(client, `${evil.url}/page`, {});
  assert.deepEqual(seen(), [['GET', undefined]]);
});

test('Items that were found are on the disk and not in memory', async (t) => {
  const server = await rangeServer(t, await tempFolder(t));
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heapUsed = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  // An empty list has 3 bytes in JSON, and 40 as an object.
  const junk = Array.from({ length: 30_000 }, () => []);
  const page = (number: number) => ({
    type: 'FeatureCollection',
    features: Array.from({ length: 10 }, (_, i) => ({
      ...{ type: 'Feature', id: `${number}-${i}`, properties: { junk }, links: [] },
    })),
    links: number < 9 ? [{ rel: 'next', href: `/page?${number + 1}` }] : [],
  });
  for (let i = 0; i < 10; i++) server.documents.set(`/page?${i}`, () => page(i));
  const before = heapUsed();
  const stored = await StoredItems.create(join(await tempFolder(t), 'items'), async () => {});
  const keep = (item: RemoteItem) => stored.add(item, item.id);
  const items = await findItems(client, `${server.url}/page?0`, {}, { keep });
  const grown = heapUsed() - before;
  assert.equal(items.length, 100);
  const { document } = await items[99]!.read();
  assert.equal((document.properties as { junk: unknown[] }).junk.length, 30_000);
  assert.ok(grown < 5e6, `${grown} bytes`);
  await stored.remove();
});

test('documents with too much depth, too long addresses or too large requests are refused', async (t) => {
  const server = await rangeServer(t, await tempFolder(t));
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  const feature = (id: string, properties = '{}') =>
    `{"type":"Feature","id":"${id}","properties":${properties},"links":[]}`;
  const deep = feature('deep', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
  const text = `{"type":"FeatureCollection","features":[${deep},${feature('a')},${feature('x'.repeat(2000))}]}`;
  server.fault = (request, response) => {
    if (request.url === '/deep') response.end(text);
    return request.url === '/deep';
  };
  const failures: string[] = [];
  const onFailure = (_url: string, error: unknown) => {
    failures.push((error as Error).message);
  };
  const found = await findItems(client, `${server.url}/deep`, {}, { onFailure });
  assert.deepEqual(
    found.map(({ id }) => id),
    ['a'],
  );
  assert.match(failures.join('\n'), /nested too deeply.*\n.*more than 1000 characters$/);

  const long = `${server.url}/${'a'.repeat(9000)}`;
  await assert.rejects(
    client.request(long, { maxBytes: 10 }),
    ({ code, message }: Error & { code: string }) => {
      assert.equal(code, 'TW_REMOTE_BAD_URL');
      return message.length < 500;
    },
  );

  let pages = 0;
  server.documents.set('/merge', () => {
    const body = { [`k${pages++}`]: 'x'.repeat(300_000) };
    const next = { rel: 'next', method: 'POST', href: '/merge', merge: true, body };
    return { type: 'FeatureCollection', features: [], links: [next] };
  });
  await assert.rejects(findItems(client, `${server.url}/merge`, {}), /asks for a request of more than/);
  assert.equal(pages, 4);
});

test('messages do not quote headers of an answer, which can repeat credentials', async (t) => {
  const server = await rangeServer(t, await tempFolder(t));
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  const answers: Record<string, [number, Record<string, string>]> = {
    '/moved': [302, { location: 'http://[TOP-SECRET' }],
    '/range': [206, { 'content-range': 'TOP-SECRET' }],
    '/encoding': [206, { 'content-encoding': 'TOP-SECRET' }],
    '/huge': [206, { 'content-range': 'bytes 0-32767/99999999999999999999' }],
  };
  server.fault = ({ url = '' }, response) => {
    response.writeHead(...answers[url]!).end(Buffer.alloc(url === '/moved' ? 0 : 32_768));
    return true;
  };
  for (const path of Object.keys(answers))
    await assert.rejects(
      RemoteFile.open(client, server.url + path),
      ({ code, message }: Error & { code: string }) =>
        /^TW_REMOTE_BAD_(URL|RANGE)$/.test(code) && !message.includes('SECRET'),
      path,
    );
});
