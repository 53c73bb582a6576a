/** Hosts that answer in ways meant to hang, to leak or to mislead. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type CredentialRules,
  findItems,
  HttpClient,
  openRemoteClient,
  RemoteFile,
  withoutSecrets,
  withoutSignature,
} from '../../src/remote/index.js';
import { rangeServer } from '../support/range-server.js';
import { tempFolder } from '../support/temp.js';

const CODE = (code: string) => (error: { code: string }) => error.code === code;
const GET = { maxBytes: 1000 };

test('an answer that changes the protocol is an error, and the request can be aborted', async (t) => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', () => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  const client = new HttpClient({ hosts: [`127.0.0.1:${port}`], anyPublic: false });
  t.after(() => client.close());
  const stop = new AbortController();
  const asked = client.request(`http://127.0.0.1:${port}/x`, { ...GET, signal: stop.signal });
  stop.abort(new Error('stopped'));
  await assert.rejects(asked, /stopped/);
  await assert.rejects(client.request(`http://127.0.0.1:${port}/x`, GET), CODE('TW_REMOTE_UNREACHABLE'));
});

test('the first failed part of a file ends the requests of the others', async (t) => {
  const folder = await tempFolder(t);
  await writeFile(join(folder, 'f'), Buffer.alloc(100_000));
  const server = await rangeServer(t, folder);
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  const file = await RemoteFile.open(client, `${server.url}/f`);
  server.requests.length = 0;
  server.fault = (_request, response, { range }) => {
    if (range?.startsWith('bytes=40000-')) response.writeHead(404).end();
    else setTimeout(() => response.writeHead(503).end(), 50).unref();
    return true;
  };
  const parts = Array.from({ length: 6 }, (_, i) => ({ offset: 10_000 * i, bytes: 10 }));
  await assert.rejects(
    file.readRanges(parts, async () => {}),
    CODE('TW_REMOTE_REFUSED'),
  );
  // Requests that were sent before have arrived by then.
  await sleep(300);
  const sent = server.requests.length;
  await sleep(1200);
  assert.equal(server.requests.length, sent);
});

test('messages never quote credentials that a host repeats', async (t) => {
  const server = await rangeServer(t, await tempFolder(t));
  server.fault = ({ headers }, response) => {
    response.writeHead(403, { 'content-type': 'text/plain' }).end(`denied: ${headers.authorization}`);
    return true;
  };
  const rules: CredentialRules = {
    ...{ bearer: [{ hosts: [server.host], token: 'hush' }], sas: [], s3: [], logins: new Map() },
  };
  const policy = { hosts: [server.host], anyPublic: false };
  const { client } = await openRemoteClient({ policy, readRules: async () => rules }, undefined);
  t.after(() => client.close());
  await assert.rejects(client.request(`${server.url}/x`, GET), (error: Error) => {
    assert.doesNotMatch(error.message, /hush/);
    return true;
  });
});

test('credentials are not sent without TLS, except to exactly the host and port of their rule', async (t) => {
  const server = await rangeServer(t, await tempFolder(t));
  server.documents.set('/x', {});
  const policy = { hosts: [server.host], anyPublic: false };
  const port = Number(server.host.split(':')[1]);
  for (const [host, expected] of [
    ['127.0.0.1', undefined],
    ['*.0.0.1', undefined],
    [`127.0.0.1:${port}`, 'Bearer hush'],
  ]) {
    const rules = { ...{ bearer: [{ hosts: [host!], token: 'hush' }], sas: [], s3: [], logins: new Map() } };
    const { client } = await openRemoteClient({ policy, readRules: async () => rules }, undefined);
    t.after(() => client.close());
    await client.request(`${server.url}/x`, GET);
    assert.equal(server.requests.at(-1)?.headers.authorization, expected);
  }
});

test('a key of S3 cannot lead to another bucket', async (t) => {
  const rules: CredentialRules = {
    ...{ bearer: [], sas: [], logins: new Map() },
    s3: [{ buckets: ['pub'], endpoint: 'http://127.0.0.1:9', accessKeyId: 'a', secretAccessKey: 'b' }],
  };
  const policy = { hosts: ['127.0.0.1:9'], anyPublic: false };
  const { client } = await openRemoteClient({ policy, readRules: async () => rules }, undefined);
  t.after(() => client.close());
  for (const key of ['../private/x', '..%2Fprivate/x', 'a/%2e%2e/../x', '..\\private\\x'])
    await assert.rejects(client.request(`s3://pub/${key}`, GET), CODE('TW_REMOTE_BAD_URL'), key);
});

test('a next link to another host sends it neither body nor headers of the page', async (t) => {
  const [page, other] = [
    await rangeServer(t, await tempFolder(t)),
    await rangeServer(t, await tempFolder(t)),
  ];
  const api = `${page.url}/stac`;
  page.documents.set('/stac', {
    type: 'Catalog',
    links: [{ rel: 'search', method: 'POST', href: `${api}/search` }],
  });
  const next = { rel: 'next', method: 'POST', href: `${other.url}/delete`, body: { all: true } };
  page.documents.set('/stac/search', {
    type: 'FeatureCollection',
    features: [],
    links: [{ ...next, headers: { 'x-admin': '1' } }],
  });
  other.documents.set('/delete', { type: 'FeatureCollection', features: [] });
  const client = new HttpClient({ hosts: [page.host, other.host], anyPublic: false });
  t.after(() => client.close());
  await findItems(client, api, {});
  const [seen] = other.requests;
  assert.deepEqual([seen?.method, seen?.body, seen?.headers['x-admin']], ['GET', '', undefined]);
});

test('a document that is no Item is reported, and the others are found', async (t) => {
  const server = await rangeServer(t, await tempFolder(t));
  const item = (id?: string) => ({ type: 'Feature', id, properties: {}, links: [] });
  server.documents.set('/all', { type: 'FeatureCollection', features: [item('a'), item(), item('b')] });
  server.documents.set('/catalog', {
    type: 'Catalog',
    id: 'c',
    links: ['/item', '/missing'].map((href) => ({ rel: 'item', href: `${server.url}${href}` })),
  });
  server.documents.set('/item', item('c'));
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  for (const [path, ids, code] of [
    ['/all', ['a', 'b'], 'TW_STAC_BAD_DOCUMENT'],
    ['/catalog', ['c'], 'TW_REMOTE_REFUSED'],
  ] as const) {
    const failures: unknown[] = [];
    const onFailure = (_url: string, error: unknown) => failures.push((error as { code: string }).code);
    const found = await findItems(client, `${server.url}${path}`, {}, { onFailure });
    assert.deepEqual([found.map(({ id }) => id), failures], [[...ids], [code]]);
  }
});

test('addresses in messages have no secrets, and addresses in digests still tell files apart', () => {
  const secrets = 'apikey=1&auth_token=2&password=3&client_secret=4&sig=5&X-Amz-Credential=6';
  assert.equal(
    withoutSecrets(`https://ann:pw@example.org/a.tif?${secrets}&band=red#access_token=7`),
    'https://example.org/a.tif?band=red',
  );
  assert.equal(withoutSecrets('https://[?token=hush'), 'https://[');
  assert.notEqual(
    withoutSignature('https://e.org/get?key=1.tif'),
    withoutSignature('https://e.org/get?key=2.tif'),
  );
  assert.equal(
    withoutSignature('https://e.org/a?sig=1&se=2'),
    withoutSignature('https://e.org/a?sig=3&se=4'),
  );
});
