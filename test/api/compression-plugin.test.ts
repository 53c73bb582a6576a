/** Compression of answers, and that conditional requests, HEAD, ranges and event streams work with it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { get as httpGet, type IncomingMessage, request as open } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { acceptedEncoding } from '../../src/api/plugins/compression.js';
import { httpTransport } from '../../src/client/transport.js';
import { process as processOf } from '../jobs/process.js';
import { eventually } from '../support/eventually.js';
import { tempFolder } from '../support/temp.js';
import { jobServer } from './job-server.js';
import { nodeWithTiles } from './node-with-tiles.js';

const decoders: Record<string, (bytes: Buffer) => Buffer> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
};

/** Sends a request with a client that does not decode answers. */
async function ask(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const sent = open(url, { method, headers, agent: false });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: answer.statusCode!, headers: answer.headers, body: await buffer(answer) };
}

async function withTiles(t: TestContext) {
  const node = await nodeWithTiles(t);
  return { node, url: await node.listen('127.0.0.1', 0) };
}

test('JSON and text are compressed for clients that accept it, with the headers that caches need', async (t) => {
  const { url } = await withTiles(t);
  for (const path of ['/search', '/', '/openapi.json', '/queryables', '/docs', '/map/browser-page.js']) {
    const plain = await ask(url + path);
    assert.ok(plain.body.length > 1024, path);
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.equal(plain.headers.vary, 'accept-encoding', path);
    for (const [name, decode] of Object.entries(decoders)) {
      const answer = await ask(url + path, { 'accept-encoding': name });
      assert.equal(answer.headers['content-encoding'], name, path);
      assert.equal(answer.headers['content-type'], plain.headers['content-type']);
      assert.equal(answer.headers.vary, 'accept-encoding');
      assert.equal(Number(answer.headers['content-length']), answer.body.length);
      assert.ok(answer.body.length < plain.body.length / 1.5, path);
      assert.deepEqual(decode(answer.body), plain.body, path);
      const head = await ask(url + path, { 'accept-encoding': name }, 'HEAD');
      assert.equal(head.body.length, 0);
      for (const header of ['content-length', 'content-encoding', 'vary', 'etag'])
        assert.equal(head.headers[header], answer.headers[header], `${path} ${header}`);
    }
  }
  const problem = await ask(`${url}/search?limit=${'x'.repeat(2000)}`, { 'accept-encoding': 'gzip' });
  assert.equal(problem.status, 400);
  assert.equal(JSON.parse(String(gunzipSync(problem.body))).code, 'TW_API_BAD_REQUEST');
});

test('short answers, pictures and tile files stay as they are', async (t) => {
  const { url } = await withTiles(t);
  const accept = { 'accept-encoding': 'gzip, br' };
  const search = await ask(`${url}/search?limit=1`);
  const [item] = JSON.parse(String(search.body)).features;
  const tile = Object.values<{ href: string }>(item.assets).find(({ href }) => href.endsWith('.tif'))!.href;
  const short = await ask(`${url}/ready`, accept);
  assert.equal(short.headers['content-encoding'], undefined);
  for (const address of [tile, `${url}/preview/${item.id}.png`]) {
    const answer = await ask(address, accept);
    assert.ok(answer.body.length > 1024);
    assert.deepEqual([answer.headers['content-encoding'], answer.headers.vary], [undefined, undefined]);
    assert.deepEqual(answer.body, (await ask(address)).body);
    assert.match(String(answer.headers.etag), /^"/, 'a strong ETag, for If-Range');
  }
  const range = await ask(tile, { ...accept, range: 'bytes=0-1999' });
  assert.deepEqual([range.status, range.body.length], [206, 2000]);
  assert.equal(range.headers['content-encoding'], undefined);
});

test('conditional requests work across encodings, by weak ETags', async (t) => {
  const { server } = await jobServer(t, await tempFolder(t), []);
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const tags = new Set<string>();
  for (const encoding of ['identity', 'br', 'gzip'])
    tags.add(String((await ask(`${url}/map`, { 'accept-encoding': encoding })).headers.etag));
  assert.equal(tags.size, 1);
  const [tag = ''] = tags;
  assert.match(tag, /^W\/"[\w-]+"$/);
  for (const known of [tag, tag.slice(2), `"other", ${tag}`, '*'])
    for (const encoding of ['identity', 'br']) {
      const answer = await ask(`${url}/map`, { 'accept-encoding': encoding, 'if-none-match': known });
      assert.deepEqual([answer.status, answer.body.length, answer.headers.etag], [304, 0, tag], known);
      assert.equal(answer.headers.vary, 'accept-encoding');
    }
  const other = await ask(`${url}/map`, { 'accept-encoding': 'br', 'if-none-match': '"other"' });
  assert.equal(other.status, 200);
});

// A compressor would hold the first event back, and the job waits for it.
test('events of a job come one by one, uncompressed', { timeout: 30_000 }, async (t) => {
  let goOn = () => {};
  const slow = processOf(async ({ log, signal }) => {
    log('info', 'first line');
    await new Promise<void>((resolve, reject) => {
      goOn = resolve;
      signal.addEventListener('abort', () => reject(signal.reason));
    });
    return 'done';
  });
  const { server, jobs } = await jobServer(t, await tempFolder(t), [slow]);
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const { id } = await jobs.start(slow, {});
  const sent = httpGet(`${url}/jobs/${id}/events`, {
    headers: { 'accept-encoding': 'gzip, br' },
    agent: false,
  });
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  assert.equal(answer.headers['content-encoding'], undefined);
  // The job waits until an event of it has arrived.
  let seen = '';
  for await (const part of answer) {
    seen += part;
    if (seen.includes('first line')) goOn();
  }
  assert.match(seen, /successful/);
});

test('files of results are compressed as they are read, and clients get what was written', async (t) => {
  const content = JSON.stringify(Array.from({ length: 5000 }, (_, i) => ({ i })));
  let folderOf = async (_job: string) => '';
  const writes = processOf(async ({ id, file }) => {
    await writeFile(join(await folderOf(id), 'data.json'), content);
    await file('data.json');
    return 'done';
  });
  const folder = await tempFolder(t);
  const { server, jobs, storage } = await jobServer(t, join(folder, 'data'), [writes]);
  folderOf = (job) => storage.results.makeFolder(job);
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const { id } = await jobs.start(writes, {});
  const path = `/jobs/${id}/results/files/data.json`;
  await eventually('the job ends', async () => (await jobs.get(id)).status === 'successful');
  const answer = await ask(url + path, { 'accept-encoding': 'gzip' });
  assert.equal(answer.headers['content-encoding'], 'gzip');
  assert.equal(answer.headers['content-length'], undefined);
  assert.equal(String(gunzipSync(answer.body)), content);
  const head = await ask(url + path, { 'accept-encoding': 'gzip' }, 'HEAD');
  assert.deepEqual([head.headers['content-encoding'], head.headers['content-length']], ['gzip', undefined]);
  assert.equal((await ask(url + path)).headers['content-length'], String(content.length));
  const into = join(folder, 'downloaded');
  await httpTransport(url).download(path, into);
  assert.equal(await readFile(into, 'utf8'), content);
});

test('the encoding follows the weights of Accept-Encoding', () => {
  const cases: [header: string | undefined, expected: string | undefined][] = [
    [undefined, undefined],
    ['', undefined],
    ['identity', undefined],
    ['deflate', undefined],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['gzip, deflate, br, zstd', 'br'],
    ['GZIP;Q=0.8 , br;q=0.5', 'gzip'],
    ['br;q=0, gzip;q=0.1', 'gzip'],
    ['*', 'gzip'],
    ['*;q=0.5, br', 'br'],
    ['*;q=0.5, br;q=0', 'gzip'],
    ['gzip;q=0, br;q=0, *', undefined],
    ['br;q=x', undefined],
    ['identity;q=1, gzip;q=0.1', undefined],
    ['identity;q=0.5, gzip', 'gzip'],
    ['identity;q=0, *;q=0', undefined],
  ];
  for (const [header, expected] of cases) assert.equal(acceptedEncoding(header), expected, header);
});
