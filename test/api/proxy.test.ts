/** A server behind a reverse proxy: links, the rate limit of clients, and that headers are ignored without the flags. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ProxyOptions } from '../../src/api/index.js';
import { openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { MAIN } from '../support/command.js';
import { ingest } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { jobServer } from './job-server.js';
import { proxyTo } from './path-proxy.js';

/** Every address in a document that names a host. */
function addressesIn(value: unknown): string[] {
  if (typeof value === 'string') return /^https?:/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    ['rel', 'stac_extensions', 'conformsTo', '$schema'].includes(name) ? [] : addressesIn(member),
  );
}

test('all links begin with the public URL, with its path, and lead through the proxy', async (t) => {
  const folder = await tempFolder(t);
  let target = '';
  const url = await proxyTo(t, () => target, '/under/tiles');
  const node = await openNode({
    ...{ data: join(folder, 'data'), memory: 512e6, cores: 2 },
    publicUrl: `${url}/`,
  });
  atEnd(t, () => node.close());
  const href = await writeTestScene(join(folder, 'scene.tif'));
  const scene = {
    ...{ collection: 'test', datetime: '2024-06-01T10:00:00Z' },
    ...{ scale: 0.0001, maskBand: 5, precision: 6 },
  };
  assert.ok((await ingest(node, { href, ...scene })).tiles > 2);
  target = await node.listen('127.0.0.1', 0);
  const seen = new Set<string>();
  const read = async (path: string) => {
    const answer = await fetch(url + path);
    assert.equal(answer.status, 200, path);
    const document: unknown = await answer.json();
    const addresses = addressesIn(document).filter((one) => !/opengis|json-schema|geojson/.test(one));
    for (const one of addresses) {
      assert.ok(one.startsWith(`${url}/`) || one === url, `${path}: ${one}`);
      if (!one.includes('{') && one !== url) seen.add(one);
    }
    return document as { links: { rel: string; href: string }[]; servers: { url: string }[] };
  };
  for (const path of ['/', '/collections', '/collections/test', '/queryables', '/aggregations'])
    await read(path);
  for (const path of ['/processes', '/processes/fill', '/jobs', '/xyz/test/tilejson.json']) await read(path);
  const page = await read('/search?limit=1');
  const next = page.links.find(({ rel }) => rel === 'next')!;
  assert.equal((await fetch(next.href)).status, 200);
  assert.deepEqual((await read('/openapi.json')).servers, [{ url }]);
  assert.ok(seen.size > 15);
  for (const one of seen) assert.notEqual((await fetch(one, { method: 'HEAD' })).status, 404, one);

  const map = await (await fetch(`${url}/map`)).text();
  const files = [...map.matchAll(/(?:href|src)="([^":]+)"/g)].map(([, name]) => name!);
  assert.ok(files.length >= 4);
  const docs = await (await fetch(`${url}/docs`)).text();
  const links = [...docs.matchAll(/(?:href|src)="([^":]+)"/g)].map(([, name]) => name!);
  assert.equal(links.length, 7);
  for (const name of [...files, ...links])
    assert.equal((await fetch(new URL(name, `${url}/map`))).status, 200, name);

  const started = await fetch(`${url}/processes/verify/execution`, {
    method: 'POST',
    headers: { authorization: `Bearer ${node.ownerSecret}`, 'content-type': 'application/json' },
    body: '{}',
  });
  assert.ok(started.headers.get('location')?.startsWith(`${url}/jobs/`));
});

const FORWARDED = {
  host: 'backend:8080',
  'x-forwarded-host': 'spoofed.example, tiles.example:8443',
  'x-forwarded-proto': 'https',
};

async function asking(t: TestContext, access: ProxyOptions & { rateLimit?: number; token?: string }) {
  const { server } = await jobServer(t, await tempFolder(t), [], { token: 'w', ...access });
  return async (headers: Record<string, string>, remoteAddress = '127.0.0.1') => {
    const answer = await server.inject({ url: '/', headers: { ...FORWARDED, ...headers }, remoteAddress });
    return { status: answer.statusCode, self: answer.json().links?.[0].href as string };
  };
}

test('a trusted proxy decides protocol and host of links; others do not', async (t) => {
  const trusting = await asking(t, { trustProxy: ['loopback', '10.1.0.0/16', '2001:db8::1'] });
  for (const address of ['127.0.0.1', '::1', '::ffff:10.1.2.3', '10.1.2.3', '2001:db8::1'])
    assert.equal((await trusting({}, address)).self, 'https://tiles.example:8443/', address);
  for (const address of ['10.2.0.1', '2001:db8::2'])
    assert.equal((await trusting({}, address)).self, 'http://backend:8080/', address);
  assert.equal((await trusting({ 'x-forwarded-proto': 'javascript' })).status, 400);
  assert.equal((await trusting({ 'x-forwarded-host': 'a/b' })).status, 400);
  const wary = await asking(t, {});
  assert.equal((await wary({})).self, 'http://backend:8080/');
  const fixed = await asking(t, { trustProxy: ['loopback'], publicUrl: 'https://x.example/tiles/' });
  assert.equal((await fixed({})).self, 'https://x.example/tiles/');
});

test('the rate limit counts the client that the nearest untrusted address names', async (t) => {
  /** Requests of five clients through a proxy, each of which sends an X-Forwarded-For of its own. */
  const passed = async (
    ask: Awaited<ReturnType<typeof asking>>,
    from: string,
    client: (i: number) => string,
  ) => {
    let passes = 0;
    for (let i = 0; i < 20; i++)
      if ((await ask({ 'x-forwarded-for': client(i) }, from)).status === 200) passes++;
    return passes;
  };
  const limit = { rateLimit: 1 };
  const trusting = await asking(t, { trustProxy: ['127.0.0.1'], ...limit });
  assert.equal(await passed(trusting, '127.0.0.1', (i) => `192.0.2.${i}`), 20, 'each is a client');
  assert.ok((await passed(trusting, '127.0.0.1', (i) => `198.51.100.${i}, 203.0.113.1`)) < 20, 'one client');
  assert.ok((await passed(trusting, '10.0.0.1', (i) => `192.0.2.${i}`)) < 20, 'not a proxy');
  const wary = await asking(t, limit);
  assert.ok((await passed(wary, '127.0.0.1', (i) => `192.0.2.${i}`)) < 20, 'no proxy is trusted');
});

test('without a token neither Host nor X-Forwarded-Host may name another machine', async (t) => {
  const { server } = await jobServer(t, await tempFolder(t), [], { trustProxy: ['loopback'] });
  const status = async (headers: Record<string, string>) =>
    (await server.inject({ url: '/', headers })).statusCode;
  assert.equal(await status({ host: 'localhost' }), 200);
  assert.equal(await status({ host: 'localhost', 'x-forwarded-host': 'tiles.example' }), 403);
  assert.equal(await status({ host: 'tiles.example', 'x-forwarded-host': 'localhost' }), 403);
});

test('a public URL must be an http URL and needs a token; proxies must be addresses', async (t) => {
  const folder = await tempFolder(t);
  const refusal = async (options: ProxyOptions & { token?: string }) =>
    openNode({ data: join(folder, 'data'), memory: 128e6, cores: 1, ...options }).then(
      async (node) => {
        await node.close();
        return 'none';
      },
      (error) => error.code,
    );
  const token = 't';
  for (const publicUrl of [
    'ftp://x.example',
    'x.example',
    'https://x.example/?a',
    'https://x.example/#a',
    'https://u@x.example',
  ])
    assert.equal(await refusal({ publicUrl, token }), 'TW_API_PUBLIC_URL', publicUrl);
  assert.equal(await refusal({ publicUrl: 'https://x.example' }), 'TW_API_OPEN_PUBLIC_URL');
  assert.equal(await refusal({ publicUrl: 'http://localhost:9000/tiles' }), 'none');
  for (const one of ['true', '1', '*', '10.0.0.0/33', '10.0.0.0/8/8', 'proxy.example', '0.0.0.0/0'])
    assert.equal(await refusal({ trustProxy: [one], token }), 'TW_API_TRUST_PROXY', one);
  assert.equal(await refusal({ publicUrl: '', trustProxy: ['', ' 127.0.0.1'], token }), 'none');
  const { status, stderr } = spawnSync(
    process.execPath,
    [MAIN, 'serve', '--data', join(folder, 'cli'), '--port', '0', '--trust-proxy', '127.0.0.1,hosts'],
    { encoding: 'utf8', env: { ...process.env, TILEWRIGHT_PUBLIC_URL: 'https://x.example/tiles' } },
  );
  assert.equal(status, 2);
  assert.match(stderr, /--trust-proxy "hosts" is not an address/);
});

test('the protocol that a proxy names may have capital letters', async (t) => {
  const { server } = await jobServer(t, await tempFolder(t), [], { trustProxy: ['loopback'] });
  const answer = await server.inject({
    url: '/processes',
    headers: { host: 'localhost', 'x-forwarded-proto': 'HTTPS' },
  });
  assert.equal(answer.json().links[0].href, 'https://localhost/processes');
});
